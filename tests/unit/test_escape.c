/* SPDX-License-Identifier: Apache-2.0 */
/* test_escape.c - what a rank may do to the user's terminal: colour it. */
#include <string.h>

#include <criterion/criterion.h>

#include "launcher/log/escape.h"

static struct buf out;
static uint8_t state;
static bool colored, narrow;

static void
begin(void)
{
	buf_clear(&out);
	state = 0;
	colored = false;
}

static void
end(void)
{
	buf_fini(&out);
}

TestSuite(escape, .init = begin, .fini = end);

static void
put(const char *at, size_t len)
{
	escape_filter(&out, (struct span){ at, len }, narrow, &state, &colored);
}

/* From the beginning, in one piece. */
static const char *
filtered(const char *text)
{
	begin();
	put(text, strlen(text));
	return buf_text(&out);
}

Test(escape, text_passes)
{
	static const char *const texts[] = { "", "loss 0.214",
		"\ttab\rreturn\n", "Grüße, 世界 │ €",
		"\xff\xfe broken \xe2\x82", "[31m is no colour",
		"bracket ] and \\ and ~" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		cr_expect_str_eq(filtered(texts[i]), texts[i]);
		cr_expect_not(colored);
	}
}

Test(escape, colours_pass_and_are_told)
{
	static const char *const texts[] = { "\033[m", "\033[0m", "\033[1;31m",
		"\033[38;5;208mx", "\033[38:2::10:20:30my",
		"a\033[1mb\033[22mc\033[4:3md" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		cr_expect_str_eq(filtered(texts[i]), texts[i]);
		cr_expect(colored);
	}
}

Test(escape, text_is_not_hidden)
{
	static const char *const texts[][2] = {
		{ "\033[8mx", "x" },
		{ "\033[08;1mx", "\033[1mx" },
		{ "\033[1;8;31mx", "\033[1;31mx" },
		{ "\033[38;5;1;8mx", "\033[38;5;1mx" },
		{ "\033[38;5;8mx", "\033[38;5;8mx" },
		{ "\033[48;2;8;8;8;8;4mx", "\033[48;2;8;8;8;4mx" },
		{ "\033[58:5:8mx", "\033[58:5:8mx" },
		{ "\033[;8mx", "\033[mx" },
		{ "\033[28mx", "\033[28mx" },
		{ "\302\2338mx", "x" },
		{ "\033[8:1mx", "x" },
		{ "\033[38:5:1;5;8mx", "\033[38:5:1;5mx" },
		{ "\033[38:2:1:2:3;2;8mx", "\033[38:2:1:2:3;2mx" },
		{ "\033[38:5:1;8;8;8;8mx", "\033[38:5:1mx" },
		{ "\033[38;48;5;8mx", "x" },
		{ "\033[38;2;8mx", "x" },
		{ "\033[38;2;1;8mx", "x" },
		{ "\033[38;2;1;2;8mx", "\033[38;2;1;2;8mx" },
		{ "\033[38;;8mx", "x" },
		{ "\033[38;5;;8mx", "x" },
		{ "\033[38;5:1;8;8mx", "x" },
		{ "\033[38mx", "x" },
		{ "\033[38;5mx", "x" },
		{ "\033[1;38;3;8mx", "x" },
		{ "\033[58;5;8mx", "x" },
		{ "\033[58;2;1;8;3;4mx", "\033[4mx" },
		{ "\033[58;5;1;8;4mx", "\033[58;5;1;4mx" },
		{ "\033[38;5;256mx", "x" },
		{ "\033[65544mx", "x" },
		{ "\033[4294967304;1mx", "x" },
		{ "\033[38;05;008;1mx", "\033[38;05;008;1mx" },
		{ "\033[mx", "\033[mx" },
		{ "\033[;;1mx", "\033[;;1mx" },
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		cr_expect_str_eq(filtered(texts[i][0]), texts[i][1]);
}

/* In one piece, and byte by byte. */
static void
expect_both(const char *in, const char *want)
{
	begin();
	put(in, strlen(in));
	escape_end(&out, &state);
	cr_expect_str_eq(buf_text(&out), want);
	begin();
	for (const char *at = in; *at != '\0'; at++)
		put(at, 1);
	escape_end(&out, &state);
	cr_expect_str_eq(buf_text(&out), want);
}

Test(escape, the_direction_of_text_does_not_change)
{
	char text[16] = "a\xe2\x80\xaa"
			"b",
	     want[] = "ab";

	for (int c = 0xaa; c <= 0xae; c++) {
		text[3] = (char)c;
		expect_both(text, want);
	}
	text[2] = (char)0x81;
	for (int c = 0xa6; c <= 0xa9; c++) {
		text[3] = (char)c;
		expect_both(text, want);
	}
	expect_both("\xe2\x80\xa9\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa",
		"\xe2\x80\xa9\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa");
	expect_both("\xe2 \xe2\x82\xac \xe2\x80", "\xe2 \xe2\x82\xac \xe2");
	expect_both("\xe2\x80\033[6n\xae", "\xe2\xae");
	expect_both("\xe2\033[6n\x80\xae", "\xe2\xae");
}

struct row {
	const char *name, *in, *out;
};

/* Each begins with A and ends with Z, which must stay. */
static const struct row rows[] = {
	{ "title", "A\033]0;title\aZ", "AZ" },
	{ "title ended by ST", "A\033]2;title\033\\Z", "AZ" },
	{ "clipboard", "A\033]52;c;cm0gLXJmIC8=\aZ", "AZ" },
	{ "link", "A\033]8;;http://x\033\\Z", "AZ" },
	{ "device control", "A\033P$qm\033\\Z", "AZ" },
	{ "application", "A\033_payload\033\\Z", "AZ" },
	{ "privacy", "A\033^payload\033\\Z", "AZ" },
	{ "start of string", "A\033Xpayload\033\\Z", "AZ" },
	{ "escape inside a string", "A\033]0;a\033bc\aZ", "AZ" },
	{ "clear", "A\033[2J\033[HZ", "AZ" },
	{ "cursor up", "A\033[1AZ", "AZ" },
	{ "erase line", "A\033[KZ", "AZ" },
	{ "private mode", "A\033[?1049hZ", "AZ" },
	{ "answer back", "A\033[6n\033[cZ", "AZ" },
	{ "no colour", "A\033[?25mZ", "AZ" },
	{ "no colour either", "A\033[>4;2mZ", "AZ" },
	{ "intermediate", "A\033[1 qZ", "AZ" },
	{ "reset", "A\033cZ", "AZ" },
	{ "save, restore", "A\0337\0338Z", "AZ" },
	{ "character set", "A\033(0\033)BZ", "AZ" },
	{ "alignment", "A\033#8Z", "AZ" },
	{ "encoding", "A\033%GZ", "AZ" },
	{ "bell, backspace", "A\a\bZ", "AZ" },
	{ "shifts", "A\016\017Z", "AZ" },
	{ "delete", "A\177Z", "AZ" },
	{ "two escapes", "A\033\033[31mZ", "A\033[31mZ" },
	{ "control sequence in UTF-8",
		"A\xc2\x9b"
		"2JZ",
		"AZ" },
	{ "title in UTF-8",
		"A\xc2\x9d"
		"0;title\aZ",
		"AZ" },
	{ "title in UTF-8 to its end",
		"A\xc2\x9d"
		"0;title\xc2\x9cZ",
		"AZ" },
	{ "device control in UTF-8", "A\xc2\x90q\xc2\x9cZ", "AZ" },
	{ "next line in UTF-8", "A\xc2\x85Z", "AZ" },
	{ "control sequence of a byte",
		"A\x9b"
		"2JZ",
		"A2JZ" },
	{ "titles of a byte", "A\x9d\x90\x98\x85Z", "AZ" },
	{ "control behind an escape", "A\033\xc2\x9bZ", "AZ" },
	{ "control behind no letter", "A\xc1\x9b\xff\x9b\xa0\x9bZ",
		"A\xc1\xff\xa0Z" },
	{ "a form too long", "A\xe0\x82\x9b\xf0\x80\x82\x9bZ", "A\xe0\xf0Z" },
	{ "control behind a letter", "A\xc3\x9b\x9b\xe4\xb8\x96\x96Z",
		"A\xc3\x9b\xe4\xb8\x96Z" },
	{ "letter with a bell in it", "A\xe4\a\x96Z", "A\xe4Z" },
	{ "letters of four bytes", "A\xf0\x9f\x98\x80\xf3\x80\x80\x80Z",
		"A\xf0\x9f\x98\x80\xf3\x80\x80\x80Z" },
	{ "no control in UTF-8", "A\xc2\xa0\xc2\xb5Z", "A\xc2\xa0\xc2\xb5Z" },
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

Test(escape, what_steers_the_terminal_does_not_pass)
{
	for (size_t i = 0; i < ROWS; i++)
		cr_expect_str_eq(filtered(rows[i].in), rows[i].out, "%s",
			rows[i].name);
}

Test(escape, a_terminal_without_utf8_gets_no_control_within_a_letter)
{
	narrow = true;
	cr_expect_str_eq(filtered("A\xc3\x9b"
				  "2J \xe4\xb8\x96 \xdc\xa0\x9bZ"),
		"A\xc3"
		"2J \xe4\xb8 \xdc\xa0Z");
	cr_expect_str_eq(filtered("A\xc2\x9b"
				  "2J\033[31mZ"),
		"A\033[31mZ");
}

Test(escape, a_split_anywhere_makes_no_difference)
{
	for (size_t i = 0; i < ROWS; i++) {
		size_t n = strlen(rows[i].in);

		if (strstr(rows[i].out, "\033[") != NULL)
			continue; /* a colour that is cut is left out */
		for (size_t a = 0; a <= n; a++) {
			for (size_t b = a; b <= n; b++) {
				begin();
				put(rows[i].in, a);
				put(rows[i].in + a, b - a);
				put(rows[i].in + b, n - b);
				cr_expect_str_eq(buf_text(&out), rows[i].out,
					"%s at %zu, %zu", rows[i].name, a, b);
			}
		}
	}
}

Test(escape, after_any_truncation_the_next_line_is_text)
{
	for (size_t i = 0; i < ROWS; i++) {
		for (size_t n = 0; n <= strlen(rows[i].in); n++) {
			begin();
			put(rows[i].in, n);
			put("\nnext", 5);
			cr_expect_not_null(strstr(buf_text(&out), "\nnext"),
				"%s cut at %zu", rows[i].name, n);
		}
	}
}

Test(escape, a_colour_of_absurd_length_is_dropped)
{
	char text[100] = "\033[";

	memset(text + 2, '1', 60);
	memcpy(text + 62, "mZ", 3);
	cr_expect_str_eq(filtered(text), "Z");
	cr_expect_not(colored);
}

Test(escape, a_nul_does_not_pass)
{
	put("a\0b", 3);
	cr_expect_str_eq(buf_text(&out), "ab");
}

/* Is the byte at @at, 80 to 9f, in a letter, be it cut? */
static bool
in_letter(size_t at)
{
	size_t i = at;
	unsigned char lead;

	while (i > 0 && ((unsigned char)out.data[i] & 0xc0) == 0x80)
		i--;
	lead = (unsigned char)out.data[i];
	if (lead < 0xc3 || lead > 0xf4 ||
		at - i > 1u + (lead >= 0xe0) + (lead >= 0xf0))
		return false;
	return at - i > 1 ||
		(lead != 0xe0 &&
			(lead != 0xf0 || (unsigned char)out.data[at] >= 0x90));
}

/* Whatever comes in: ESC goes out only as the beginning of a colour, and no
 * control but tab, newline and carriage return. */
static void
check_harmless(void)
{
	for (size_t i = 0; i < out.len; i++) {
		unsigned char c = (unsigned char)out.data[i];

		if (c == '\033') {
			cr_assert_eq(out.data[++i], '[');
			while (strchr("0123456789:;", out.data[++i]) != NULL)
				cr_assert_neq(out.data[i], '\0');
			cr_assert_eq(out.data[i], 'm');
			continue;
		}
		cr_assert(c >= 0x20 || c == '\t' || c == '\n' || c == '\r');
		cr_assert_neq(c, 0x7f);
		cr_assert(c < 0x80 || c > 0x9f || (!narrow && in_letter(i)));
		cr_assert_not(c == 0xc2 && i + 1 < out.len &&
			(unsigned char)out.data[i + 1] >= 0x80 &&
			(unsigned char)out.data[i + 1] < 0xa0);
	}
}

Test(escape, no_bytes_in_any_pieces_make_it_let_a_sequence_through)
{
	/* Bytes that mean something to it are more frequent than chance. */
	static const char likely[] =
		"\033\033\033[[]PX^_\\\a\n;:0123mmmHJK(? \xc2\x9b\x9d\x9cxyz"
		"\xc3\xe0\xe4\xf0\xb8\x96\xa0";
	uint64_t r = 0x9e3779b97f4a7c15ULL;
	char text[64];

	for (int round = 0; round < 100000; round++) {
		size_t cut;

		for (size_t i = 0; i < sizeof(text); i++) {
			r ^= r << 13;
			r ^= r >> 7;
			r ^= r << 17;
			text[i] = (r & 7) == 0 ?
				(char)(r >> 8) :
				likely[(r >> 8) % (sizeof(likely) - 1)];
		}
		begin();
		narrow = round % 2;
		cut = (r >> 32) % (sizeof(text) + 1);
		put(text, cut);
		put(text + cut, sizeof(text) - cut);
		check_harmless();
	}
}

/* The lowest and highest letters that begin with e0 and f0, byte by byte. */
Test(escape, letters_at_the_limits_of_their_length)
{
	static const char *const texts[][2] = {
		{ "\xe0\xa0\x80", "\xe0\xa0\x80" },
		{ "\xe0\x9f\x80", "\xe0" },
		{ "\xf0\x90\x80\x80", "\xf0\x90\x80\x80" },
		{ "\xf0\x8f\x80\x80", "\xf0" },
		{ "\xf4\x8f\x80\x80", "\xf4\x8f\x80\x80" },
		{ "\xf5\x8f\x80\x80", "\xf5" },
		{ "\xc3\x80\x80", "\xc3\x80" },
		{ "\xdf\x80\x80", "\xdf\x80" },
		{ "\xef\x80\x80\x80", "\xef\x80\x80" },
		{ "\xc1\x80", "\xc1" },
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		begin();
		for (const char *p = texts[i][0]; *p != '\0'; p++)
			put(p, 1);
		escape_end(&out, &state);
		cr_expect_str_eq(buf_text(&out), texts[i][1], "%zu", i);
	}
}
