/* SPDX-License-Identifier: Apache-2.0 */
/* noop.c - a static program that does nothing: the cheapest rank there is. */
int
main(void)
{
	return 0;
}
