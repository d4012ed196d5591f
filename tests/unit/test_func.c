/* SPDX-License-Identifier: Apache-2.0 */
/* test_func.c - which functions others may call, and what they take. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include <xrun/func.h>

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
