/* SPDX-License-Identifier: Apache-2.0 */
/* test_type.c - members, functions, references, errors, and objects of types. */
#include "tests/unit/short_memory.h"
#include "tests/unit/value_rig.h"

TestSuite(type, .init = begin, .fini = end);

/* --- members, functions, references ---------------------------------------- */

Test(type, a_worker_has_name_and_id)
{
	char longest[129];
	struct xr_value *v = xr_value_new_worker("a-b:c_d", 32767);
	uint32_t id = 0;

	cr_expect_str_eq(xr_value_worker(v, &id), "a-b:c_d");
	cr_expect(eq(u32, id, 32767));
	xr_value_unref(v);
	memset(longest, 'a', 128);
	longest[128] = '\0';
	cr_expect_null(xr_value_new_worker(longest, 1));
	longest[127] = '\0';
	v = xr_value_new_worker(longest, 1);
	cr_expect_not_null(v);
	xr_value_unref(v);
	cr_expect_null(xr_value_new_worker("", 1));
	cr_expect_null(xr_value_new_worker(NULL, 1));
	cr_expect_null(xr_value_new_worker("\xff", 1));
}

Test(type, a_function_is_a_name_with_what_it_was_bound_to)
{
	struct xr_value *item = watched(), *bound = NULL;
	struct xr_value *f = xr_fn_bind("geo.area", item);
	char longest[257];

	cr_expect_str_eq(xr_value_func(f, &bound), "geo.area");
	cr_expect_eq(bound, item);
	xr_value_unref(f);
	cr_expect(eq(int, freed, 1));
	f = xr_fn_bind("geo.area", NULL);
	cr_expect_not_null(xr_value_func(f, &bound));
	cr_expect_null(bound);
	xr_value_unref(f);
	memset(longest, 'a', 256);
	longest[256] = '\0';
	cr_expect_null(xr_fn_bind(longest, watched()));
	cr_expect_null(xr_fn_bind("", watched()));
	cr_expect_null(xr_fn_bind(NULL, watched()));
	cr_expect_null(xr_fn_bind("\xc3", watched()));
	cr_expect(eq(int, freed, 5), "it is taken, also on failure");
}

Test(type, a_reference_has_a_handle_of_its_own)
{
	struct xr_value *v = xr_value_new_rref(&rref_seven);

	cr_expect(eq(int, rref_seven.handles, 1));
	cr_expect_eq(xr_value_rref(v), &rref_seven);
	xr_value_unref(v);
	cr_expect(eq(int, rref_seven.handles, 0));
	cr_expect_null(xr_value_new_rref(NULL));
}

Test(type, without_an_agent_there_is_no_reference, .init = NULL)
{
	value_set_rref_ops(NULL);
	cr_expect_null(xr_value_new_rref(&rref_seven));
	cr_expect(eq(int, rref_seven.handles, 0));
}

/* --- errors ---------------------------------------------------------------- */

Test(type, an_error_has_all_that_was_told)
{
	struct xr_value *cause = some_error(NULL);
	struct xr_failure told = {
		.size = sizeof(told),
		.status = XR_E_REMOTE,
		.type = "",
		.text = "no \xff\xc3 text, \xc3\xbc is",
		.backtrace = "one\ntwo\n",
		.worker_id = 9,
		.cause = cause,
	};
	struct xr_failure got = { .size = sizeof(got) };
	struct xr_value *v = xr_value_new_error(&told);

	xr_value_unref(cause);
	cr_assert_eq(xr_value_failure(v, &got), XR_OK);
	cr_expect_eq(got.status, XR_E_REMOTE);
	cr_expect_str_eq(got.type, "");
	cr_expect_str_eq(got.text, "no ?? text, \xc3\xbc is");
	cr_expect_null(got.func);
	cr_expect_null(got.worker);
	cr_expect_str_eq(got.backtrace, "one\ntwo\n");
	cr_expect(eq(u32, got.worker_id, 9));
	cr_expect(eq(u32, got.size, sizeof(got)));
	cr_assert_eq(xr_value_failure(got.cause, &got), XR_OK);
	cr_expect_str_eq(got.func, "geo.area");
	cr_expect_str_eq(got.worker, "trainer:3");
	cr_expect_null(got.cause);
	xr_value_unref(v);
}

Test(type, only_an_error_causes_an_error)
{
	struct xr_value *number = i64(1);
	struct xr_failure small = { .size = sizeof(small) - 1 };

	cr_expect_null(some_error(number));
	cr_expect_null(xr_value_new_error(&small));
	cr_expect_null(xr_value_new_error(NULL));
	xr_value_unref(number);
	number = some_error(NULL);
	cr_expect_eq(xr_value_failure(number, &small), XR_E_INVAL);
	xr_value_unref(number);
}

/* --- types of the program's own -------------------------------------------- */

static enum xr_status
no_method(struct xr_call *call, void *self, struct xr_value *args, void *ctx)
{
	(void)call, (void)self, (void)args, (void)ctx;
	return XR_OK;
}

Test(type, an_object_is_given_back_and_freed_once)
{
	struct point *p = point_new(1, 2);
	struct xr_value *v = xr_value_new_opaque("geo.Point", p);

	cr_expect_eq(xr_value_object(v, "geo.Point"), p);
	cr_expect_eq(xr_value_object(v, NULL), p);
	cr_expect_null(xr_value_object(v, "geo.Line"));
	cr_expect_str_eq(xr_value_type(v), "geo.Point");
	cr_expect(eq(int, points, 1));
	xr_value_unref(v);
	cr_expect(eq(int, points, 0));
	cr_expect_null(xr_value_new_opaque("geo.Line", &one));
	cr_expect_null(xr_value_new_opaque(NULL, &one));
}

Test(type, a_type_is_refused_with_what_is_wrong_about_it)
{
	char longest[129];
	struct xr_method method = { sizeof(method), "area", "", 0, false,
		no_method };
	struct xr_method twice[2] = { method, method };
	struct xr_type rows[] = {
		{ .size = sizeof(rows[0]), .name = "" },
		{ .size = sizeof(rows[0]), .name = NULL },
		{ .size = sizeof(rows[0]), .name = "a b" },
		{ .size = sizeof(rows[0]), .name = "gr\xc3\xbc" },
		{ .size = sizeof(rows[0]), .name = longest },
		{ .size = sizeof(rows[0]) - 1, .name = "short" },
		{ .size = sizeof(rows[0]), .name = "none", .method_count = 1 },
		{ .size = sizeof(rows[0]),
			.name = "twice",
			.methods = twice,
			.method_count = 2 },
		{ .size = sizeof(rows[0]),
			.name = "many",
			.methods = twice,
			.method_count = 5000 },
		{ .size = sizeof(rows[0]),
			.name = "unnamed",
			.methods = &method,
			.method_count = 1 },
	};
	struct xr_error err = { 0 };

	memset(longest, 'a', 128);
	longest[128] = '\0';
	method.name = "";
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		err.text[0] = '\0';
		cr_expect_eq(xr_type_register(&rows[i], &err), XR_E_INVAL,
			"%zu", i);
		cr_expect_neq(err.text[0], '\0');
	}
	twice[1].name = "more";
	twice[1].size++;
	cr_expect_eq(xr_type_register(&rows[7], &err), XR_E_INVAL);
	twice[1] = (struct xr_method){
		.size = sizeof(method),
		.name = "more",
	};
	cr_expect_eq(xr_type_register(&rows[7], &err), XR_E_INVAL);
	cr_expect(eq(str, err.text,
		"type twice: method 1 has no name, or no function"));
	longest[127] = '\0';
	cr_expect_eq(xr_type_register(&rows[4], &err), XR_OK);
	cr_expect_eq(xr_type_register(&rows[4], &err), XR_E_EXISTS);
	cr_expect_eq(xr_type_register(NULL, &err), XR_E_INVAL);
}

Test(type, a_type_is_copied_with_its_methods)
{
	char name[] = "geo.Circle", area[] = "area", schema[] = "f";
	struct xr_method methods[] = {
		{ sizeof(methods[0]), area, schema, 2, false, no_method },
		{ sizeof(methods[0]), "unit", NULL, 0, true, no_method },
	};
	struct xr_type type = { .size = sizeof(type),
		.name = name,
		.methods = methods,
		.method_count = 2,
		.ctx = &one };
	const struct xr_type *known;
	const struct xr_method *m;

	cr_assert_eq(xr_type_register(&type, NULL), XR_OK);
	memset(name, 'x', 10);
	memset(area, 'x', 4);
	memset(schema, 'x', 1);
	memset(methods, 0, sizeof(methods));
	cr_expect_null(value_type_find("geo.Circl", 9));
	cr_expect_null(value_type_find("xxxxxxxxxx", 10));
	known = value_type_find("geo.Circle and more", 10);
	cr_assert_not_null(known);
	cr_expect_eq(known->ctx, &one);
	m = value_method_find(known, "area");
	cr_assert_not_null(m);
	cr_expect_str_eq(m->schema, "f");
	cr_expect(eq(u32, m->flags, 2));
	m = value_method_find(known, "unit");
	cr_assert_not_null(m);
	cr_expect_null(m->schema);
	cr_expect(m->is_static);
	cr_expect_eq(m->fn, no_method);
	cr_expect_null(value_method_find(known, "xxxx"));
}

/* --- memory ---------------------------------------------------------------- */

Test(type, a_type_that_finds_no_memory_is_not_registered)
{
	const struct xr_type type = { .size = sizeof(type),
		.name = "geo.Line" };

	until_short = 1;
	cr_expect_eq(xr_type_register(&type, NULL), XR_E_NOMEM);
	until_short = 0;
	cr_expect_null(value_type_find("geo.Line", 8));
	cr_expect_eq(xr_type_register(&type, NULL), XR_OK);
}

/* @len bytes of a name, as that of a worker and of a function. */
static void
expect_names(size_t len, bool of_worker, bool of_func)
{
	char name[300];
	struct xr_value *v;

	memset(name, 'n', sizeof(name));
	name[len] = '\0';
	v = xr_value_new_worker(name, 5);
	cr_expect_eq(v != NULL, of_worker, "%zu", len);
	if (v != NULL)
		cr_expect_str_eq(xr_value_worker(v, NULL), name);
	xr_value_unref(v);
	v = xr_fn_bind(name, NULL);
	cr_expect_eq(v != NULL, of_func, "%zu", len);
	if (v != NULL)
		cr_expect_str_eq(xr_value_func(v, NULL), name);
	xr_value_unref(v);
}

Test(type, names_have_a_limit)
{
	expect_names(0, false, false);
	expect_names(1, true, true);
	expect_names(127, true, true);
	expect_names(128, false, true);
	expect_names(255, false, true);
	expect_names(256, false, false);
	cr_expect_null(xr_value_new_worker(NULL, 1));
	cr_expect_null(xr_value_new_worker("\xff", 1));
	cr_expect_null(xr_fn_bind(NULL, NULL));
	cr_expect_null(xr_fn_bind("\xff", NULL));
	for (int i = 0; i < 2; i++) {
		until_short = 1;
		cr_expect_null(i == 0 ? xr_value_new_worker("w", 1) :
					xr_fn_bind("f", NULL));
		cr_expect_eq(until_short, 0);
	}
}
