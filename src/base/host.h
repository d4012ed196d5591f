/* SPDX-License-Identifier: Apache-2.0 */
/* host.h - the name of this machine, as reports and folders have it. */
#ifndef BASE_HOST_H
#define BASE_HOST_H

#include <stddef.h>

/* host_name() - in @out, cut to fit; "localhost" if it has none. Returns
 * @out. */
const char *host_name(char *out, size_t cap);

#endif /* BASE_HOST_H */
