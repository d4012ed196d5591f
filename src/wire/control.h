/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control.h - messages of control sockets, made from control.def.
 *
 * A message is one line: a JSON object with "type", which names the message,
 * maybe "id", any number that comes back with the answer, and the fields of the
 * message. Whoever reads a line takes it through the strict gate (base/gate.h)
 * and the checks of its row.
 *
 * struct control is a tagged union with one member for each message. What it
 * points to borrows from the line, and dies with it.
 */
#ifndef WIRE_CONTROL_H
#define WIRE_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "xrun/error.h"

#define CONTROL_VERSION    1
#define CONTROL_LINE_MAX   (1 << 20)  /* bytes, with its line end */
#define CONTROL_ANSWER_MAX (64 << 20) /* the same of what the job says */
#define CONTROL_NONE       INT64_MIN  /* of an int: it is not there */

/* Who sends it; a set. */
enum control_by {
	CONTROL_BY_JOB = 1 << 0,
	CONTROL_BY_CLIENT = 1 << 1,
	CONTROL_BY_RANK = 1 << 2,
	CONTROL_BY_BOTH = CONTROL_BY_CLIENT | CONTROL_BY_RANK,
};

enum control_kind {
	CONTROL_KIND_text,
	CONTROL_KIND_int,
	CONTROL_KIND_real,
	CONTROL_KIND_flag,
	CONTROL_KIND_json,
};

/* What each kind is in C, and what says that a field is not there. */
#define CONTROL_C_text const char * /* NULL */
#define CONTROL_C_int  int64_t      /* CONTROL_NONE */
#define CONTROL_C_real double       /* NaN */
#define CONTROL_C_flag bool         /* false */
#define CONTROL_C_json struct span  /* .at is NULL; raw JSON otherwise */

/* clang-format off */
#define MSG(NAME, name, by, help) CONTROL_##NAME,
#define F(kind, field, need, help)
#define END(name)
enum control_type {
#include "wire/control.def"
	CONTROL_TYPES
};
#undef MSG
#undef F

#define MSG(NAME, name, by, help) struct control_##name {
#define F(kind, field, need, help) CONTROL_C_##kind field;
#undef END
#define END(name) char end_; };
#include "wire/control.def"
#undef MSG
#undef F
#undef END

struct control {
	enum control_type type;
	int64_t id; /* CONTROL_NONE: it has none */
	union {
#define MSG(NAME, name, by, help) struct control_##name name;
#define F(kind, field, need, help)
#define END(name)
#include "wire/control.def"
#undef MSG
#undef F
#undef END
	};
};
/* clang-format on */

struct control_field {
	const char *name; /* NULL ends a message's */
	enum control_kind kind;
	bool must;
	size_t offset; /* in the message's struct */
	const char *help;
};

/* One row a message: for reader, writer, manual and tests. */
struct control_row {
	const char *name;
	unsigned by; /* enum control_by */
	const char *help;
	const struct control_field *(*fields)(void);
};

extern const struct control_row control_rows[CONTROL_TYPES];

/* control_new() - a message without any field yet. */
struct control control_new(enum control_type type, int64_t id);

/*
 * control_read() - one line.
 *
 * @line: without its line end, terminated; changed, and borrowed by @m
 * @by:   who the sender is; others' messages are refused
 *
 * Returns  XR_OK; XR_E_DECODE (no JSON), XR_E_PROTO (no message: a type or field
 *          that is missing or of another kind), XR_E_NOTFOUND (an unknown type,
 *          or not this sender's) with words in @err. m->id is right even then, if
 *          the line has one, and so is m->type, or it is CONTROL_TYPES.
 */
enum xr_status control_read(struct control *m, char *line, size_t len,
	enum control_by by, struct xr_error *err);

/* control_put() - the line of @m, with its end. */
void control_put(struct buf *out, const struct control *m);

#endif /* WIRE_CONTROL_H */
