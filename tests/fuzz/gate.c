/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate.c - fuzz target: the strict gate in front of JSON, with and without
 * comments, and the reader of what has passed.
 *
 * Input: the text.
 *
 * Claims: a refusal says where; what passes, cJSON takes too; with comments,
 * what is refused is unchanged, and what passes is JSON of the same length with
 * everything in its place; of what passed, every item stands in the text, in
 * order, with keys that differ, and put together again it passes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/buf.h"
#include "base/gate.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "tests/fuzz/fuzz.h"

#define NAME     "name.json"
#define KEYS     16 /* of an object, that are compared with each other */
#define TEXT_MAX 4096

/* What a text of JSON says is UTF-8 without a NUL. */
static size_t
check_text(struct span text, char *out)
{
	size_t len = gate_unescape(text, out), step;

	HOLDS(len + 2 <= text.len);
	HOLDS(out[len] == '\0' && strlen(out) == len);
	for (size_t i = 0; i < len; i += step) {
		step = utf8_step(out + i, len - i);
		HOLDS(step != 0);
	}
	return len;
}

/* @key is none of the @n before it; they are kept in @seen. */
static void
check_key(struct span key, char *seen[KEYS], size_t n)
{
	char *text = xcalloc(1, key.len + 1);

	check_text(key, text);
	for (size_t i = 0; i < n && i < KEYS; i++)
		HOLDS(strcmp(seen[i], text) != 0);
	if (n < KEYS)
		seen[n] = text;
	else
		free(text);
}

/* All of @value, without blanks, to @out. */
static void
rebuild(struct span value, struct buf *out, unsigned depth)
{
	enum gate_kind kind = gate_kind(value);
	struct gate_walk walk = gate_walk(value);
	const char *end = value.at + value.len, *last = value.at;
	char *seen[KEYS], *text;
	struct gate_item item;
	size_t n = 0;

	HOLDS(depth <= GATE_DEPTH_MAX && value.len > 0);
	if (kind != GATE_OBJECT && kind != GATE_ARRAY) {
		HOLDS(!gate_next(&walk, &item));
		text = xcalloc(1, value.len + 1);
		if (kind == GATE_TEXT)
			check_text(value, text);
		free(text);
		buf_put(out, value.at, value.len);
		return;
	}
	buf_put_char(out, (char)kind);
	for (; gate_next(&walk, &item); n++) {
		HOLDS(item.value.at > last);
		HOLDS(item.value.at + item.value.len < end);
		HOLDS((item.key.at != NULL) == (kind == GATE_OBJECT));
		if (item.key.at != NULL) {
			HOLDS(item.key.at > last &&
				item.key.at < item.value.at);
			check_key(item.key, seen, n);
		}
		buf_fmt(out, "%s%.*s%s", n == 0 ? "" : ",", (int)item.key.len,
			item.key.at == NULL ? "" : item.key.at,
			item.key.at == NULL ? "" : ":");
		rebuild(item.value, out, depth + 1);
		last = item.value.at + item.value.len - 1;
	}
	buf_put_char(out, kind == GATE_OBJECT ? '}' : ']');
	for (size_t i = 0; kind == GATE_OBJECT && i < n && i < KEYS; i++)
		free(seen[i]);
}

static void
check_passed(const char *text, size_t len)
{
	struct span root = gate_root(text, len);
	struct buf again = { 0 };
	cJSON *tree = cJSON_ParseWithLength(text, len);

	HOLDS(tree != NULL);
	cJSON_Delete(tree);
	HOLDS(root.at >= text && root.at + root.len <= text + len);
	rebuild(root, &again, 0);
	HOLDS(again.bad == XR_OK && again.len <= len);
	HOLDS(gate_check(NAME, again.data, again.len, GATE_MAX, NULL) == XR_OK);
	buf_fini(&again);
}

/* "name.json:LINE:COLUMN: ", which is a place in the text or behind it. */
static void
check_refused(const char *text, size_t len, enum xr_status status,
	const struct xr_error *err)
{
	struct gate_place end = gate_place(text, text + len);
	unsigned line = 0, column = 0;

	if (status != XR_E_DECODE)
		return;
	HOLDS(sscanf(err->text, NAME ":%u:%u: ", &line, &column) == 2);
	HOLDS(line >= 1 && line <= end.line && column >= 1);
	HOLDS(line < end.line || column <= end.column + 1);
}

/* What is left stands where it stood, for whoever counts lines and columns. */
static void
check_places(const char *json, const char *text, size_t len)
{
	struct gate_place a = gate_place(json, json + len);
	struct gate_place b = gate_place(text, text + len);

	HOLDS(a.line == b.line && a.column == b.column);
	for (size_t i = 0; i < len; i++)
		HOLDS(json[i] == text[i] ||
			(text[i] != '\n' &&
				(json[i] == ' ' || json[i] == '\r')));
}

static void
check_commented(const char *text, size_t len, bool plain)
{
	char *copy = xcalloc(1, len + 1);
	struct xr_error err = { 0 };
	enum xr_status status;

	memcpy(copy, text, len);
	status = gate_check_commented(NAME, copy, len, TEXT_MAX, &err);
	fuzz_error(status, &err);
	HOLDS(!plain || status == XR_OK);
	if (plain || status != XR_OK)
		HOLDS(memcmp(copy, text, len) == 0);
	if (status == XR_OK) {
		HOLDS(gate_check(NAME, copy, len, TEXT_MAX, NULL) == XR_OK);
		check_places(copy, text, len);
		check_passed(copy, len);
	} else {
		check_refused(text, len, status, &err);
	}
	free(copy);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct xr_error err = { 0 };
	char *text = xcalloc(1, size == 0 ? 1 : size);
	enum xr_status status;

	if (size > 0)
		memcpy(text, data, size);
	status = gate_check(NAME, text, size, TEXT_MAX, &err);
	fuzz_error(status, &err);
	HOLDS(size <= TEXT_MAX || status != XR_OK);
	if (status == XR_OK)
		check_passed(text, size);
	else
		check_refused(text, size, status, &err);
	check_commented(text, size, status == XR_OK);
	free(text);
	return 0;
}
