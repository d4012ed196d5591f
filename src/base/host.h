/* SPDX-License-Identifier: Apache-2.0 */
/* host.h - what this machine is called, as reports and folders have it, and
 * since when it runs. */
#ifndef BASE_HOST_H
#define BASE_HOST_H

#include <stddef.h>

/* host_name() - in @out, cut to fit; "localhost" if it has none. Returns
 * @out. */
const char *host_name(char *out, size_t cap);

/* host_boot() - the kernel's name of this boot in @out, without a newline; "" if
 * it has none. Returns @out. */
const char *host_boot(char *out, size_t cap);

#endif /* BASE_HOST_H */
