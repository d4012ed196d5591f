/* SPDX-License-Identifier: Apache-2.0 */
/* argshow.c - every argument as hex: "argv[1] 2 6869" is "hi". */
#include <stdio.h>
#include <string.h>

int
main(int argc, char **argv)
{
	const char *p;
	int i;

	for (i = 0; i < argc; i++) {
		printf("argv[%d] %zu ", i, strlen(argv[i]));
		for (p = argv[i]; *p != '\0'; p++)
			printf("%02x", (unsigned char)*p);
		printf("\n");
	}
	return fflush(stdout) == 0 ? 0 : 2;
}
