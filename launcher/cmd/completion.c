/* SPDX-License-Identifier: Apache-2.0 */
/* completion.c - see completion.h. */
#include <string.h>

#include "base/opt_print.h"
#include "launcher/cmd/completion.h"
#include "launcher/cmd/help.h"
#include "launcher/cmd/say.h"
#include "launcher/cmd/verb.h"
#include "launcher/job/options.h"

/* clang-format off */

/*
 * What does not depend on the tables. Readline splits --name=value into three
 * words, unless the user took '=' out of COMP_WORDBREAKS.
 */
static const char script[] =
"# _xrun_propose OPTION WORD [PREFIX]: values of OPTION that begin with WORD\n"
"_xrun_propose()\n"
"{\n"
"	local values\n"
"	values=$(_xrun_values \"$1\")\n"
"	case $values in\n"
"	@file)\n"
"		compopt -o filenames 2>/dev/null\n"
"		mapfile -t COMPREPLY < <(compgen -f -- \"$2\")\n"
"		;;\n"
"	@dir)\n"
"		compopt -o filenames 2>/dev/null\n"
"		mapfile -t COMPREPLY < <(compgen -d -- \"$2\")\n"
"		;;\n"
"	*)\n"
"		mapfile -t COMPREPLY < <(compgen -W \"$values\" -- \"$2\")\n"
"		;;\n"
"	esac\n"
"	COMPREPLY=(\"${COMPREPLY[@]/#/${3-}}\")\n"
"}\n"
"# _xrun_word WORD AT: options, verbs if it is the first, programs\n"
"_xrun_word()\n"
"{\n"
"	local words=''\n"
"	case $1 in\n"
"	--*=*)\n"
"		_xrun_propose \"${1%%=*}\" \"${1#*=}\" \"${1%%=*}=\"\n"
"		;;\n"
"	-*)\n"
"		mapfile -t COMPREPLY < <(compgen -W \"$(_xrun_words)\" -- \"$1\")\n"
"		if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then\n"
"			compopt -o nospace 2>/dev/null\n"
"		fi\n"
"		;;\n"
"	*)\n"
"		if ((COMP_CWORD == 1)); then words=$(_xrun_verbs); fi\n"
"		compopt -o filenames 2>/dev/null\n"
"		mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$1\"\n"
"			if [[ -n $1 ]]; then compgen -c -- \"$1\"; fi\n"
"			compgen -f -- \"$1\")\n"
"		;;\n"
"	esac\n"
"}\n"
"_xrun()\n"
"{\n"
"	local at=1 word cur=${COMP_WORDS[COMP_CWORD]} rest=0\n"
"	COMPREPLY=()\n"
"	if ((COMP_CWORD == 2)); then\n"
"		case ${COMP_WORDS[1]} in\n"
"		help)\n"
"			mapfile -t COMPREPLY < <(\n"
"				compgen -W \"$(_xrun_topics)\" -- \"$cur\")\n"
"			return\n"
"			;;\n"
"		completion)\n"
"			mapfile -t COMPREPLY < <(compgen -W bash -- \"$cur\")\n"
"			return\n"
"			;;\n"
"		config)\n"
"			mapfile -t COMPREPLY < <(\n"
"				compgen -W 'show check schema' -- \"$cur\")\n"
"			return\n"
"			;;\n"
"		version)\n"
"			mapfile -t COMPREPLY < <(compgen -W --json -- \"$cur\")\n"
"			return\n"
"			;;\n"
"		esac\n"
"	fi\n"
"	while ((at < COMP_CWORD)); do\n"
"		word=${COMP_WORDS[at]}\n"
"		if [[ $word == -- ]]; then\n"
"			((at++))\n"
"			rest=1\n"
"			break\n"
"		elif [[ $word != -?* ]]; then\n"
"			break\n"
"		elif [[ ${COMP_WORDS[at + 1]} == = && $word == --* ]]; then\n"
"			if ((COMP_CWORD <= at + 2)); then\n"
"				_xrun_propose \"$word\" \"${cur#=}\"\n"
"				return\n"
"			fi\n"
"			((at += 3))\n"
"		elif _xrun_takes \"$word\"; then\n"
"			if ((COMP_CWORD == at + 1)); then\n"
"				_xrun_propose \"$word\" \"$cur\"\n"
"				return\n"
"			fi\n"
"			((at += 2))\n"
"		else\n"
"			((at++))\n"
"		fi\n"
"	done\n"
"	if ((at < COMP_CWORD)); then\n"
"		if declare -F _command_offset >/dev/null; then\n"
"			_command_offset \"$at\"\n"
"		fi\n"
"	elif ((rest)); then\n"
"		compopt -o filenames 2>/dev/null\n"
"		mapfile -t COMPREPLY < <(compgen -c -- \"$cur\"; compgen -f -- \"$cur\")\n"
"	else\n"
"		_xrun_word \"$cur\"\n"
"	fi\n"
"}\n"
"complete -o bashdefault -o default -F _xrun xrun\n";
/* clang-format on */

static void
put_verbs(struct buf *out)
{
	buf_put_text(out, "_xrun_verbs()\n{\n\techo '");
	for (const struct verb *v = verbs; v->name != NULL; v++)
		if (v->run != NULL)
			buf_fmt(out, "%s ", v->name);
	buf_put_text(out, "'\n}\n");
}

static void
put_topics(struct buf *out)
{
	buf_put_text(out, "_xrun_topics()\n{\n\techo '");
	for (const struct help_topic *t = help_topics; t->name != NULL; t++)
		buf_fmt(out, "%s ", t->name);
	for (const struct opt *o = run_options; o->name != NULL; o++)
		buf_fmt(out, "%s ", o->name);
	buf_put_text(out, "'\n}\n");
}

void
completion_bash(struct buf *out)
{
	buf_put_text(out,
		"# bash completion of xrun, from its tables: xrun "
		"completion bash\n");
	put_verbs(out);
	put_topics(out);
	opt_print_bash(run_options, out);
	buf_put_text(out, script);
}

int
cmd_completion(int argc, char **argv)
{
	struct buf out = { 0 };

	if (argc < 2)
		return say_no("completion: for which shell? (bash)");
	if (argc > 2 || strcmp(argv[1], "bash") != 0)
		return say_no("completion: '%s' is not one of bash",
			argv[argc - 1]);
	completion_bash(&out);
	return say(&out);
}
