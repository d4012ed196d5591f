/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xrun/coll.h - what several ranks do together: reduce, gather, send, meet.
 *
 * A group is a set of ranks of the world, in their order. All of its members call
 * the same operations in the same order, with the same type and count; where they
 * do not, each of them fails, and is told who differs. A rank is always one of the
 * world, also in a group of some.
 *
 * What is reduced has the same bits on all members, and whenever the same is
 * reduced by as many: it is combined in the order of ranks; halves (f16, bf16) in
 * f32, rounded once.
 *
 * A group that failed, because a member is gone, was late, or differed, stays so:
 * all that follows has the same error, and a new group has to be made. Any thread
 * may call; operations of one group that are to follow each other are called one
 * after the other. After fork() it is the parent's: XR_E_STATE.
 */
#ifndef XRUN_COLL_H
#define XRUN_COLL_H

#include <stddef.h>
#include <stdint.h>

#include "xrun/error.h"
#include "xrun/future.h"
#include "xrun/tensor.h"
#include "xrun/time.h"
#include "xrun/world.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers are on the wire, and are never reused. */
enum xr_redop {
	XR_SUM = 1,
	XR_PROD = 2,
	XR_MIN = 3, /* of floats: what is no number stays so; -0 is below +0 */
	XR_MAX = 4,
	XR_BAND = 5, /* bits: of integers and booleans */
	XR_BOR = 6,
	XR_BXOR = 7,
	XR_AVG = 8, /* of floats and complex numbers */
};

struct xr_coll;

struct xr_coll_opts {
	uint32_t size;         /* sizeof(struct xr_coll_opts) */
	const uint32_t *ranks; /* [count], in any order, each once, borrowed; */
	size_t count;          /* NULL: all of the world */
	int64_t timeout;       /* ns, of operations without one; 0 and
				* XR_TIMEOUT_DEFAULT: that of the world;
				* XR_TIMEOUT_NEVER */
};

/*
 * xr_coll_new() - a group of ranks, each of which calls this.
 *
 * @opts: borrowed; NULL: all of the world, and its timeout
 * @coll: receives the group, which is to be released with xr_coll_free(). Who is not
 *        one of its ranks can do nothing with it: XR_E_NOTMEMBER
 *
 * Returns  XR_OK; XR_E_INVAL: a rank twice, or that the world has not; XR_E_STATE: no
 *          world; XR_E_TIMEOUT, XR_E_PEER_LOST: @err names who did not come;
 *          XR_E_NOMEM
 * Thread   any.  Blocks: until all are there.
 */
enum xr_status xr_coll_new(struct xr_world *world,
	const struct xr_coll_opts *opts, struct xr_coll **coll,
	struct xr_error *err);

/* xr_coll_close() - nothing more is done with it: what is under way ends with
 * XR_E_CLOSED, but what was sent, of which the receiver says when it has it. Others are
 * not waited for, and are not told. Again: nothing happens. */
void xr_coll_close(struct xr_coll *coll);
void xr_coll_free(struct xr_coll *coll); /* closed at once; NULL is fine */

uint32_t xr_coll_size(const struct xr_coll *coll);
/* xr_coll_index() - how many of its members come before this rank; -1: it is none
 * of them. */
int64_t xr_coll_index(const struct xr_coll *coll);

/*
 * What an operation works with; each says which of these it reads. All memory is
 * the caller's, and stays as it is until the operation, or its future, has ended,
 * also where that was cancelled, as messages can be, or late.
 */
struct xr_coll_op {
	uint32_t size;       /* sizeof(struct xr_coll_op) */
	enum xr_dtype dtype; /* type of the elements */
	void *data;          /* [count], row-major; NULL with 0 */
	size_t count;        /* elements */
	enum xr_redop op;    /* of a reduction */
	uint32_t tag;        /* of a message: the receiver's is the same */
	int64_t rank;        /* who sends, or receives; of the world */
	void *const
		*list; /* [members]: of each, in the order of ranks, [count] */
	int64_t timeout; /* ns; 0 and XR_TIMEOUT_DEFAULT: that of the group;
			  * XR_TIMEOUT_NEVER */
};

#define XR_COLL_ANY INT64_C(-1) /* a rank: whichever */

/*
 * All of these return
 *
 *          XR_OK
 *          XR_E_NOTMEMBER  this rank is no member; nothing was done
 *          XR_E_INVAL      what @op says: no such type, operation or rank; a list
 *                          where there is to be none, or none
 *          XR_E_CONFLICT   members called different things: @err says who
 *          XR_E_TIMEOUT    @err names who did not come
 *          XR_E_PEER_LOST  a member is gone, which is named
 *          XR_E_CLOSED     the group was closed
 *          XR_E_PROTO      a member sent what nobody asked for
 *          XR_E_STATE      no world; within a short function
 *          XR_E_NOMEM
 *
 * and leave @op's results undefined where they fail. None but send and recv returns
 * before all members have called it. Those with an i, which all members call or none,
 * do not wait,
 * and give a future (xrun/future.h) that ends with NIL, or with the error; what can
 * be known before is returned. Of a group XR_COLL_AHEAD operations can be under way,
 * counted from the oldest, with 1 GiB, or one: to begin a further one waits, until its
 * timeout is over; XR_E_AGAIN: in a short function.
 */
#define XR_COLL_AHEAD 4096

/* xr_coll_barrier() - until all have entered. @op: timeout; NULL. */
enum xr_status xr_coll_barrier(struct xr_coll *coll,
	const struct xr_coll_op *op, struct xr_error *err);
enum xr_status xr_coll_ibarrier(struct xr_coll *coll,
	const struct xr_coll_op *op, struct xr_future **future,
	struct xr_error *err);

/* xr_coll_bcast() - what @op's rank has in data is in everybody's. On one machine that
 * rank waits for nobody, and the others for it alone. */
enum xr_status xr_coll_bcast(struct xr_coll *coll, const struct xr_coll_op *op,
	struct xr_error *err);
enum xr_status xr_coll_ibcast(struct xr_coll *coll, const struct xr_coll_op *op,
	struct xr_future **future, struct xr_error *err);

/* xr_coll_allreduce() - data, combined by op, in everybody's data. */
enum xr_status xr_coll_allreduce(struct xr_coll *coll,
	const struct xr_coll_op *op, struct xr_error *err);
enum xr_status xr_coll_iallreduce(struct xr_coll *coll,
	const struct xr_coll_op *op, struct xr_future **future,
	struct xr_error *err);

/* xr_coll_reduce() - the same in the data of @op's rank; others' is as it was. */
enum xr_status xr_coll_reduce(struct xr_coll *coll, const struct xr_coll_op *op,
	struct xr_error *err);
enum xr_status xr_coll_ireduce(struct xr_coll *coll,
	const struct xr_coll_op *op, struct xr_future **future,
	struct xr_error *err);

/* xr_coll_allgather() - everybody's data in everybody's list. */
enum xr_status xr_coll_allgather(struct xr_coll *coll,
	const struct xr_coll_op *op, struct xr_error *err);
enum xr_status xr_coll_iallgather(struct xr_coll *coll,
	const struct xr_coll_op *op, struct xr_future **future,
	struct xr_error *err);

/* xr_coll_gather() - everybody's data in the list of @op's rank; nobody else has
 * one. */
enum xr_status xr_coll_gather(struct xr_coll *coll, const struct xr_coll_op *op,
	struct xr_error *err);
enum xr_status xr_coll_igather(struct xr_coll *coll,
	const struct xr_coll_op *op, struct xr_future **future,
	struct xr_error *err);

/* xr_coll_scatter() - of the list of @op's rank each has its own in data; nobody
 * else has a list. Who waits for whom is as of xr_coll_bcast(), but that a list of long
 * ones may be awaited until all have theirs. */
enum xr_status xr_coll_scatter(struct xr_coll *coll,
	const struct xr_coll_op *op, struct xr_error *err);
enum xr_status xr_coll_iscatter(struct xr_coll *coll,
	const struct xr_coll_op *op, struct xr_future **future,
	struct xr_error *err);

/* xr_coll_send() - data to @op's rank, with a tag; it has been received, by a
 * xr_coll_recv() of the same count and type, when this returns. Of what a member sends
 * another has up to 1024 messages and 256 MiB, or one, before it asks for them; further
 * ones go when it has received of those, in their order. To send does not wait for
 * that, to receive does: so messages are to be received in about the order in which they
 * are sent. XR_E_AGAIN: the other has kept too many whose senders gave up. */
enum xr_status xr_coll_send(struct xr_coll *coll, const struct xr_coll_op *op,
	struct xr_error *err);
enum xr_status xr_coll_isend(struct xr_coll *coll, const struct xr_coll_op *op,
	struct xr_future **future, struct xr_error *err);

/* xr_coll_recv() - data of @op's rank, or of XR_COLL_ANY, with that tag; of several
 * that which came first. @from: receives whose; may be NULL. Its future ends with
 * an I64, whose. */
enum xr_status xr_coll_recv(struct xr_coll *coll, const struct xr_coll_op *op,
	int64_t *from, struct xr_error *err);
enum xr_status xr_coll_irecv(struct xr_coll *coll, const struct xr_coll_op *op,
	struct xr_future **future, struct xr_error *err);

/*
 * What an operation works with where each member has several tensors, each on
 * another device; the host's memory is one. All of them have one type, and as many
 * elements, which follow each other.
 */
struct xr_coll_multi {
	uint32_t size;  /* sizeof(struct xr_coll_multi) */
	uint32_t count; /* of tensors, the same on all members; up to
			 * XR_COLL_MULTI_MOST */
	struct xr_value *const *tensors; /* [count] */
	enum xr_redop op;                /* of a reduction */
	uint32_t index; /* which of @rank's tensors; the same on all members */
	int64_t rank;   /* who sends, or receives; of the world */
	struct xr_value *const *const
		*lists;  /* [count], each NULL, or [members * count] */
	int64_t timeout; /* ns, of all of it; 0 and XR_TIMEOUT_DEFAULT: that
			  * of the group; XR_TIMEOUT_NEVER */
};

#define XR_COLL_MULTI_MOST 1024

/*
 * These return as those above do, and
 *
 *          XR_E_INVAL     what @multi says: tensors of which two lie on one device,
 *                         or that are not alike, or have gaps
 *          XR_E_NODEV     nobody knows a device here; nothing was done
 *          XR_E_DEVICE    a device failed, on the member that is named. So does the
 *                         group; and also where a member has no memory, or its
 *                         device has none
 *
 * Members whose lists are not equally long call different things: XR_E_CONFLICT.
 * None returns before all members have their results on all their devices, or hear
 * why one has not. Up to 16 MiB of the host's memory are used for what is on its
 * way, more only with many members or devices.
 */

/* xr_coll_bcast_multi() - what @multi's rank has in tensor index is in all tensors of
 * all members. */
enum xr_status xr_coll_bcast_multi(struct xr_coll *coll,
	const struct xr_coll_multi *multi, struct xr_error *err);

/* xr_coll_allreduce_multi() - all tensors of all members, combined by op, in all of
 * them: those of a member in the order of its list, then the members' in theirs;
 * halves are rounded once, an average is divided once. */
enum xr_status xr_coll_allreduce_multi(struct xr_coll *coll,
	const struct xr_coll_multi *multi, struct xr_error *err);

/* xr_coll_reduce_multi() - the same in tensor index of @multi's rank; others are as
 * they were. */
enum xr_status xr_coll_reduce_multi(struct xr_coll *coll,
	const struct xr_coll_multi *multi, struct xr_error *err);

/* xr_coll_allgather_multi() - all tensors of all members in each of the lists: tensor
 * j of the k-th member is at k * count + j. Those of a list may lie anywhere. */
enum xr_status xr_coll_allgather_multi(struct xr_coll *coll,
	const struct xr_coll_multi *multi, struct xr_error *err);

#ifdef __cplusplus
}
#endif

#endif /* XRUN_COLL_H */
