/* SPDX-License-Identifier: Apache-2.0 */
/* cross.c - see cross.h. */
#include "worker/net/cross.h"

enum cross
cross_judge(const struct cross_case *c)
{
	if (c->incarnation < c->seen)
		return CROSS_OLD;
	if (c->incarnation > c->seen)
		return c->link == CROSS_NONE ? CROSS_TAKE : CROSS_RENEW;
	if (c->dial <= c->known)
		return CROSS_STALE;
	switch (c->link) {
	case CROSS_NONE:
		return CROSS_TAKE;
	case CROSS_DIALLING:
		return c->self < c->other ? CROSS_WAIT : CROSS_ADOPT;
	case CROSS_UP:
		break;
	}
	return CROSS_RENEW;
}
