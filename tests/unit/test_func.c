/* SPDX-License-Identifier: Apache-2.0 */
/* test_func.c - which functions others may call, and what they take. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include <xrun/func.h>

#include "tests/unit/short_memory.h"

#include "worker/rpc/func.h"

static enum xr_status
nothing(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)call;
	(void)args;
	(void)ctx;
	return XR_OK;
}

static enum xr_status
nothing_raw(struct xr_call *call, const void *data, size_t len, void *ctx)
{
	(void)call;
	(void)data;
	(void)len;
	(void)ctx;
	return XR_OK;
}

static struct xr_func
named(const char *name)
{
	return (struct xr_func){
		.size = sizeof(struct xr_func),
		.name = name,
		.fn = nothing,
	};
}

Test(func, what_was_registered_is_found_by_its_hash)
{
	struct xr_func f = named("one");
	const struct func *found;

	cr_expect_null(func_find(func_hash("one", 3)));
	cr_assert_eq(xr_fn_register(&f, NULL), XR_OK);
	found = func_find(func_hash("one", 3));
	cr_assert_not_null(found);
	cr_expect_str_eq(found->f.name, "one");
	cr_expect_neq(found->f.name, f.name, "its text is copied");
	cr_expect_null(func_find(func_hash("other", 5)));
}

Test(func, a_name_is_registered_once)
{
	struct xr_error err = { 0 };
	struct xr_func f = named("one");

	cr_assert_eq(xr_fn_register(&f, NULL), XR_OK);
	cr_expect_eq(xr_fn_register(&f, &err), XR_E_EXISTS);
	cr_expect(strstr(err.text, "one"), "%s", err.text);
}

Test(func, of_a_table_all_are_registered_or_none)
{
	struct xr_func f[] = { named("a"), named("b"), named("a") };

	cr_expect_eq(xr_module_static(f, 3, NULL), XR_E_EXISTS);
	cr_expect_null(func_find(func_hash("a", 1)));
	cr_expect_null(func_find(func_hash("b", 1)));
	cr_expect_eq(xr_module_static(f, 2, NULL), XR_OK);
	cr_expect_not_null(func_find(func_hash("b", 1)));
}

Test(func, thousands_are_found)
{
	char name[32];

	for (int i = 0; i < 5000; i++) {
		struct xr_func f = named(name);

		snprintf(name, sizeof(name), "function %d", i);
		cr_assert_eq(xr_fn_register(&f, NULL), XR_OK, "%s", name);
	}
	for (int i = 0; i < 5000; i++) {
		const struct func *f;
		int n = snprintf(name, sizeof(name), "function %d", i);

		f = func_find(func_hash(name, (size_t)n));
		cr_assert_not_null(f);
		cr_assert_str_eq(f->f.name, name);
	}
}

#define REFUSED(words) \
	do { \
		memset(&err, 0, sizeof(err)); \
		cr_expect_eq(xr_fn_register(&f, &err), XR_E_INVAL); \
		cr_expect_str_eq(err.text, words); \
	} while (0)

Test(func, what_is_no_function_is_refused_with_words)
{
	static const char *const bad_name =
		"a function's name is 1 to 255 bytes of UTF-8";
	char long_name[300], words[64];
	struct xr_error err = { 0 };
	struct xr_func f = named("x");

	memset(long_name, 'a', sizeof(long_name));
	long_name[256] = '\0';
	f.name = "";
	REFUSED(bad_name);
	f.name = NULL;
	REFUSED(bad_name);
	f.name = long_name;
	REFUSED(bad_name);
	long_name[255] = '\0';
	cr_expect_eq(xr_fn_register(&f, &err), XR_OK);
	f.name = "\xff";
	REFUSED(bad_name);
	f = named("x");
	f.raw = nothing_raw;
	REFUSED("x: it takes either fn or raw");
	f.fn = NULL;
	f.schema = "i";
	REFUSED("x: 'i' is no schema of a raw function");
	f.raw = NULL;
	REFUSED("x: it takes either fn or raw");
	f = named("x");
	f.schema = "*";
	REFUSED("x: '*' is no schema");
	f = named("x");
	f.flags = 64 | XR_FN_SHORT;
	REFUSED("x: unknown flags 0x40");
	f = named("x");
	f.size = sizeof(f) - 1;
	snprintf(words, sizeof(words), "struct xr_func: its size is %u",
		f.size);
	REFUSED(words);
	cr_expect_eq(xr_fn_register(NULL, &err), XR_E_INVAL);
	cr_expect_str_eq(err.text, "struct xr_func: its size is 0");
	cr_expect_null(func_find(func_hash("x", 1)));
	f = named("x");
	f.size++;
	f.flags = XR_FN_ASYNC | XR_FN_SHARE;
	cr_expect_eq(xr_fn_register(&f, &err), XR_OK);
}

Test(func, a_schema_is_letters_and_a_star_at_the_end)
{
	cr_expect(func_schema_is(NULL));
	cr_expect(func_schema_is(""));
	cr_expect(func_schema_is("nbiufcBTLDtrweoF?"));
	cr_expect(func_schema_is("i*"));
	cr_expect(func_schema_is("T?*"));
	cr_expect_not(func_schema_is("*"));
	cr_expect_not(func_schema_is("i*i"));
	cr_expect_not(func_schema_is("x"));
}

static enum xr_status
fit(const char *schema, int numbers, int texts, struct xr_error *err)
{
	struct xr_value *args = xr_value_new_list();
	enum xr_status status;

	for (int i = 0; i < numbers; i++)
		xr_value_append(args, xr_value_new_i64(i - 1));
	for (int i = 0; i < texts; i++)
		xr_value_append(args, xr_value_new_text("t", 1));
	status = func_check(schema, args, err);
	xr_value_unref(args);
	return status;
}

Test(func, arguments_fit_their_schema_or_are_told_apart)
{
	struct xr_error err = { 0 };

	cr_expect_eq(fit(NULL, 3, 3, &err), XR_OK);
	cr_expect_eq(fit("", 0, 0, &err), XR_OK);
	cr_expect_eq(fit("", 1, 0, &err), XR_E_SCHEMA);
	cr_expect_str_eq(err.text, "1 arguments, and it takes 0");
	cr_expect_eq(fit("iiT", 2, 1, &err), XR_OK);
	cr_expect_eq(fit("iiT", 2, 0, &err), XR_E_SCHEMA);
	cr_expect_str_eq(err.text, "2 arguments, and it takes 3");
	cr_expect_eq(fit("iTT", 2, 1, &err), XR_E_SCHEMA);
	cr_expect_str_eq(err.text,
		"argument 1 is of kind i64, and it takes text");
	cr_expect_eq(fit("u", 1, 0, &err), XR_E_SCHEMA, "-1 is none");
	cr_expect_eq(fit("f", 1, 0, &err), XR_OK, "and is a real number");
	cr_expect_eq(fit("i*", 0, 0, &err), XR_OK);
	cr_expect_eq(fit("i*", 9, 0, &err), XR_OK);
	cr_expect_eq(fit("i*", 9, 1, &err), XR_E_SCHEMA);
	cr_expect_eq(fit("iT*", 1, 4, &err), XR_OK);
	cr_expect_eq(fit("??", 1, 1, &err), XR_OK);
}

/* Peers of other versions count on it. */
Test(func, a_hash_is_fnv_1a_of_64_bits_folded)
{
	cr_expect_eq(func_hash("", 0), 0x4fd0bfc1);
	cr_expect_eq(func_hash("a", 1), 0x296230c0);
	cr_expect_eq(func_hash("foobar", 6), 0x72ad2699);
	cr_expect_eq(func_hash("\xff", 1), 0x29669922);
	cr_expect_eq(func_hash("foobarx", 6), func_hash("foobar", 6));
}

#define KINDS 16

/* One of each kind that needs nothing else. */
static struct xr_value *
value_of_kind(enum xr_kind kind)
{
	switch (kind) {
	case XR_NIL:
		return xr_value_new_nil();
	case XR_BOOL:
		return xr_value_new_bool(true);
	case XR_I64:
		return xr_value_new_i64(-1);
	case XR_U64:
		return xr_value_new_u64(UINT64_C(1) << 63);
	case XR_F64:
		return xr_value_new_f64(0.5);
	case XR_BYTES:
		return xr_value_new_bytes("b", 1);
	case XR_TEXT:
		return xr_value_new_text("t", 1);
	case XR_LIST:
		return xr_value_new_list();
	case XR_DICT:
		return xr_value_new_dict();
	default:
		return NULL;
	}
}

/* What is no number fits its own letter only. */
Test(func, each_letter_takes_its_kind)
{
	static const struct {
		char letter;
		enum xr_kind kind;
	} row[] = {
		{ 'n', XR_NIL },
		{ 'b', XR_BOOL },
		{ 'i', XR_I64 },
		{ 'u', XR_U64 },
		{ 'f', XR_F64 },
		{ 'B', XR_BYTES },
		{ 'T', XR_TEXT },
		{ 'L', XR_LIST },
		{ 'D', XR_DICT },
	};
	static const char others[] = "ctrweoF";
	struct xr_error err = { 0 };
	char schema[2] = "", words[96];

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct xr_value *v = value_of_kind(row[i].kind), *args;

		args = xr_value_new_list_of(&v, 1);
		for (size_t k = 0; k < sizeof(row) / sizeof(row[0]); k++) {
			bool fits = i == k ||
				(row[k].letter == 'f' &&
					(row[i].letter == 'i' ||
						row[i].letter == 'u'));

			schema[0] = row[k].letter;
			cr_expect_eq(func_check(schema, args, &err),
				fits ? XR_OK : XR_E_SCHEMA, "%c of %c",
				row[i].letter, row[k].letter);
			if (fits)
				continue;
			snprintf(words, sizeof(words),
				"argument 0 is of kind %s, and it takes %s",
				xr_kind_name(row[i].kind),
				xr_kind_name(row[k].kind));
			cr_expect_str_eq(err.text, words);
		}
		for (size_t k = 0; others[k] != '\0'; k++) {
			schema[0] = others[k];
			cr_expect_eq(func_check(schema, args, &err),
				XR_E_SCHEMA);
		}
		cr_expect_eq(func_check("?", args, &err), XR_OK);
		xr_value_unref(args);
	}
}

Test(func, too_few_arguments_are_told_with_how_many_it_takes)
{
	struct xr_error err = { 0 };

	cr_expect_eq(fit("iiT", 1, 0, &err), XR_E_SCHEMA);
	cr_expect_str_eq(err.text, "1 arguments, and it takes 3");
	cr_expect_eq(fit("iiT*", 1, 0, &err), XR_E_SCHEMA);
	cr_expect_str_eq(err.text, "1 arguments, and it takes 2 and more");
	cr_expect_eq(fit("iiT*", 2, 0, &err), XR_OK);
	cr_expect_eq(fit("i", 3, 0, &err), XR_E_SCHEMA);
	cr_expect_str_eq(err.text, "3 arguments, and it takes 1");
	cr_expect_eq(fit("i*", 1, 2, &err), XR_E_SCHEMA);
	cr_expect_str_eq(err.text,
		"argument 1 is of kind text, and it takes i64");
	cr_expect_eq(fit("iT", 1, 0, &err), XR_E_SCHEMA);
	cr_expect_eq(fit("", 0, 0, NULL), XR_OK);
}

/* In one call, and from one call to the next; names whose hashes share a place. */
Test(func, a_table_grows_before_it_is_half_full)
{
	char name[128][16];
	struct xr_func f[128];

	for (int i = 0; i < 128; i++) {
		snprintf(name[i], sizeof(name[i]), "f%d", i);
		f[i] = named(name[i]);
	}
	cr_expect_eq(xr_module_static(f, 0, NULL), XR_OK);
	cr_expect_null(func_find(func_hash("f0", 2)));
	for (int n = 0; n < 128; n++) {
		cr_expect_eq(xr_module_static(&f[n], 1, NULL), XR_OK);
		for (int i = 0; i < 128; i++) {
			const struct func *found =
				func_find(func_hash(name[i], strlen(name[i])));

			cr_expect_eq(found != NULL, i <= n);
			if (found != NULL)
				cr_expect_str_eq(found->f.name, name[i]);
		}
	}
}

/* Each allocation of it fails once: nothing is registered. */
Test(func, without_memory_none_is_registered)
{
	struct xr_func f[] = { named("a"), named("b") };
	enum xr_status status = XR_E_NOMEM;
	struct xr_error err = { 0 };
	const struct func *a;
	unsigned at = 0;

	f[0].schema = "iT*";
	f[0].ctx = &err;
	f[0].flags = XR_FN_SHORT;
	while (status != XR_OK && at < 20) {
		until_short = ++at;
		status = xr_module_static(f, 2, &err);
		until_short = 0;
		if (status == XR_OK)
			continue;
		cr_expect_eq(status, XR_E_NOMEM);
		cr_expect(at == 1 || strcmp(err.text, "out of memory") == 0);
		cr_expect_null(func_find(func_hash("a", 1)));
		cr_expect_null(func_find(func_hash("b", 1)));
	}
	/* The table of both, the copies with their texts, and the table of all. */
	cr_expect_eq(at, 1 + 3 + 2 + 1 + 1);
	a = func_find(func_hash("a", 1));
	cr_assert_not_null(a);
	cr_expect_str_eq(a->f.schema, "iT*");
	cr_expect_neq(a->f.schema, f[0].schema);
	cr_expect_eq(a->f.ctx, &err);
	cr_expect_eq(a->f.flags, XR_FN_SHORT);
	cr_expect_eq(a->name_len, 1);
	cr_expect_eq(a->hash, func_hash("a", 1));
	cr_expect_eq(xr_module_static(f, 1, &err), XR_E_EXISTS);
	cr_expect_str_eq(err.text, "a is registered already");
}

Test(func, two_names_with_one_hash_are_not_both_registered)
{
	struct xr_func f[] = { named("f49418"), named("f54048") };
	struct xr_error err = { 0 };

	cr_assert_eq(func_hash(f[0].name, strlen(f[0].name)),
		func_hash(f[1].name, strlen(f[1].name)));
	cr_expect_eq(xr_module_static(f, 2, &err), XR_E_EXISTS);
	cr_expect_str_eq(err.text,
		"f54048 cannot be told from f49418, which is registered: take another name");
	cr_expect_eq(xr_fn_register(&f[0], &err), XR_OK);
	cr_expect_eq(xr_fn_register(&f[1], &err), XR_E_EXISTS);
	cr_expect_str_eq(err.text,
		"f54048 cannot be told from f49418, which is registered: take another name");
}
