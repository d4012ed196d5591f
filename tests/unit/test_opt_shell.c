/* SPDX-License-Identifier: Apache-2.0 */
/* test_opt_shell.c - what shells are given to complete a table of settings. */
#include <criterion/criterion.h>

#include "base/opt_shell.h"

static const char *const modes[] = { "line", "full", NULL };
static const char *const words[] = { "auto", "none", NULL };

/* A row of each form. */
static const struct opt table[] = {
	{ .name = "ranks",
		.letter = 'n',
		.alias = "np",
		.type = OPT_INT,
		.arg = "N",
		.part = true,
		.help = "one's [number]: \\n" },
	{ .name = "logs",
		.letter = 'l',
		.type = OPT_FLAG,
		.dflt = "yes",
		.help = "keep no files" },
	{ .name = "quiet",
		.alias = "qt",
		.type = OPT_FLAG,
		.dflt = "no",
		.help = "say less" },
	{ .name = "interactive", .type = OPT_FLAG, .help = "say more" },
	{ .name = "help", .letter = 'h', .type = OPT_FLAG, .help = "say all" },
	{ .name = "show",
		.type = OPT_INT,
		.maybe = true,
		.arg = "A:B",
		.help = "one rank" },
	{ .name = "prefix",
		.letter = 'p',
		.type = OPT_TEXT,
		.arg = "FORMAT",
		.no = "none",
		.dflt = "yes", /* which is no flag that is on */
		.words = words,
		.help = "words" },
	{ .name = "buffer",
		.type = OPT_CHOICE,
		.choices = modes,
		.part = true,
		.help = "choices" },
	{ .name = "report", .type = OPT_TEXT, .arg = "FILE", .help = "a file" },
	{ .name = "log",
		.type = OPT_TEXT,
		.arg = "FILE",
		.words = words,
		.help = "a file or a word" },
	{ .name = "wdir",
		.letter = 'C',
		.type = OPT_TEXT,
		.arg = "DIR",
		.part = true,
		.help = "a folder" },
	{ .name = "signal",
		.type = OPT_SIGNAL,
		.arg = "SIG",
		.help = "a signal" },
	{ .name = "env", .type = OPT_LIST, .arg = "NAME", .help = "many" },
	{ 0 },
};

Test(opt_shell, bash_is_given_words_values_and_those_that_take_one)
{
	struct buf b = { 0 };

	opt_shell_bash(table, &b);
	cr_expect_str_eq(buf_text(&b),
		"_xrun_words()\n"
		"{\n"
		"\techo '-n --ranks= -l --logs --no-logs --quiet --no-quiet "
		"--interactive --no-interactive -h --help --show --no-show "
		"-p --prefix= --no-prefix --buffer= --report= --log= -C --wdir= "
		"--signal= --env= '\n"
		"}\n"
		"_xrun_part_words()\n"
		"{\n"
		"\techo '-n --ranks= --buffer= -C --wdir= '\n"
		"}\n"
		"_xrun_takes()\n"
		"{\n"
		"\tcase $1 in\n"
		"\t-n|-np|--ranks|\\\n"
		"\t-p|--prefix|\\\n"
		"\t--buffer|\\\n"
		"\t--report|\\\n"
		"\t--log|\\\n"
		"\t-C|--wdir|\\\n"
		"\t--signal|\\\n"
		"\t--env) return 0 ;;\n"
		"\tesac\n"
		"\treturn 1\n"
		"}\n"
		"_xrun_values()\n"
		"{\n"
		"\tcase $1 in\n"
		"\t-p|--prefix) echo 'auto none' ;;\n"
		"\t--buffer) echo 'line full' ;;\n"
		"\t--report) echo '@file' ;;\n"
		"\t--log) echo 'auto none' ;;\n"
		"\t-C|--wdir) echo '@dir' ;;\n"
		"\t--signal) echo 'HUP INT QUIT TERM USR1 USR2 KILL' ;;\n"
		"\tesac\n"
		"}\n");
	buf_fini(&b);
}

Test(opt_shell, zsh_is_given_specs)
{
	struct buf b = { 0 };

	opt_shell_zsh(table, false, &b);
	cr_expect_str_eq(buf_text(&b),
		"_xrun_options=(\n"
		"\t'(--ranks -n -np)-n+[one'\\''s \\[number\\]: \\\\n]:N:'\n"
		"\t'(--ranks -n -np)-np[one'\\''s \\[number\\]: \\\\n]:N:'\n"
		"\t'(--ranks -n -np)--ranks=[one'\\''s \\[number\\]: "
		"\\\\n]:N:'\n"
		"\t'(--logs --no-logs -l)-l[undo --no-logs]'\n"
		"\t'(--logs --no-logs -l)--logs[undo --no-logs]'\n"
		"\t'(--logs --no-logs -l)--no-logs[keep no files]'\n"
		"\t'(--quiet --no-quiet -qt)-qt[say less]'\n"
		"\t'(--quiet --no-quiet -qt)--quiet[say less]'\n"
		"\t'(--quiet --no-quiet -qt)--no-quiet[undo --quiet]'\n"
		"\t'(--interactive --no-interactive)--interactive[say "
		"more]'\n"
		"\t'(--interactive --no-interactive)--no-interactive[undo "
		"--interactive]'\n"
		"\t'(--help --no-help -h)-h[say all]'\n"
		"\t'(--help --no-help -h)--help[say all]'\n"
		"\t'(--show --no-show)--show=-[one rank]::A\\:B:'\n"
		"\t'(--show --no-show)--no-show[undo --show]'\n"
		"\t'(--prefix --no-prefix -p)-p+[words]:FORMAT:(auto none)'\n"
		"\t'(--prefix --no-prefix -p)--prefix=[words]:FORMAT:(auto "
		"none)'\n"
		"\t'(--prefix --no-prefix -p)--no-prefix[undo --prefix]'\n"
		"\t'(--buffer)--buffer=[choices]:buffer:(line full)'\n"
		"\t'(--report)--report=[a file]:FILE:_files'\n"
		"\t'(--log)--log=[a file or a word]:FILE:_files'\n"
		"\t'(--wdir -C)-C+[a folder]:DIR:_files -/'\n"
		"\t'(--wdir -C)--wdir=[a folder]:DIR:_files -/'\n"
		"\t'(--signal)--signal=[a signal]:SIG:(HUP INT QUIT TERM "
		"USR1 USR2 KILL)'\n"
		"\t'*--env=[many]:NAME:'\n"
		")\n");
	buf_clear(&b);
	opt_shell_zsh(table, true, &b);
	cr_expect_str_eq(buf_text(&b),
		"_xrun_options=(\n"
		"\t'(--ranks -n -np)-n+[one'\\''s \\[number\\]: \\\\n]:N:'\n"
		"\t'(--ranks -n -np)-np[one'\\''s \\[number\\]: \\\\n]:N:'\n"
		"\t'(--ranks -n -np)--ranks=[one'\\''s \\[number\\]: "
		"\\\\n]:N:'\n"
		"\t'(--buffer)--buffer=[choices]:buffer:(line full)'\n"
		"\t'(--wdir -C)-C+[a folder]:DIR:_files -/'\n"
		"\t'(--wdir -C)--wdir=[a folder]:DIR:_files -/'\n"
		")\n");
	buf_fini(&b);
}

Test(opt_shell, fish_is_given_a_command_for_each_option)
{
	struct buf b = { 0 };

	opt_shell_fish(table, &b);
	cr_expect_str_eq(buf_text(&b),
		"set -g __xrun_takes -n -np --ranks -p --prefix --buffer "
		"--report --log -C --wdir --signal --env\n"
		"complete -c xrun -n __xrun_at_options -s n -o np -l ranks "
		"-x -d 'one\\'s [number]: \\\\n'\n"
		"complete -c xrun -n __xrun_at_first_options -s l -l logs -d "
		"'undo --no-logs'\n"
		"complete -c xrun -n __xrun_at_first_options -l no-logs -d "
		"'keep no files'\n"
		"complete -c xrun -n __xrun_at_first_options -o qt -l quiet "
		"-d 'say less'\n"
		"complete -c xrun -n __xrun_at_first_options -l no-quiet -d "
		"'undo --quiet'\n"
		"complete -c xrun -n __xrun_at_first_options -l interactive "
		"-d 'say more'\n"
		"complete -c xrun -n __xrun_at_first_options -l "
		"no-interactive -d 'undo --interactive'\n"
		"complete -c xrun -n __xrun_at_first_options -s h -l help -d "
		"'say all'\n"
		"complete -c xrun -n __xrun_at_first_options -l show -d 'one "
		"rank'\n"
		"complete -c xrun -n __xrun_at_first_options -l no-show -d "
		"'undo --show'\n"
		"complete -c xrun -n __xrun_at_first_options -s p -l prefix "
		"-x -a 'auto none' -d 'words'\n"
		"complete -c xrun -n __xrun_at_first_options -l no-prefix -d "
		"'undo --prefix'\n"
		"complete -c xrun -n __xrun_at_options -l buffer -x -a 'line "
		"full' -d 'choices'\n"
		"complete -c xrun -n __xrun_at_first_options -l report -r -F "
		"-d 'a file'\n"
		"complete -c xrun -n __xrun_at_first_options -l log -r -F "
		"-d 'a file or a word'\n"
		"complete -c xrun -n __xrun_at_options -s C -l wdir -x -a "
		"'(__fish_complete_directories)' -d 'a folder'\n"
		"complete -c xrun -n __xrun_at_first_options -l signal -x -a "
		"'HUP INT QUIT TERM USR1 USR2 KILL' -d 'a signal'\n"
		"complete -c xrun -n __xrun_at_first_options -l env -x -d "
		"'many'\n");
	buf_fini(&b);
}

Test(opt_shell, each_way_to_write_an_option_is_a_line)
{
	struct buf b = { 0 };

	opt_shell_words(table, &b);
	cr_expect_str_eq(buf_text(&b),
		"--ranks\n"
		"-n\n"
		"--logs\n"
		"--no-logs\n"
		"-l\n"
		"--quiet\n"
		"--no-quiet\n"
		"--interactive\n"
		"--no-interactive\n"
		"--help\n"
		"--no-help\n"
		"-h\n"
		"--show\n"
		"--no-show\n"
		"--prefix\n"
		"--no-prefix\n"
		"-p\n"
		"--buffer\n"
		"--report\n"
		"--log\n"
		"--wdir\n"
		"-C\n"
		"--signal\n"
		"--env\n");
	buf_fini(&b);
}
