/* SPDX-License-Identifier: Apache-2.0 */
/* options_table.c - the rows of the main form; base/opt.h says what one does. */
#include <string.h>

#include "base/clock.h"
#include "base/ranks.h"
#include "launcher/job/again.h"
#include "launcher/job/options.h"
#include "launcher/job/options_form.h"
#include "place/env.h"
#include "place/mask.h"
#include "place/profile.h"

#define AT(field) offsetof(struct run_options, field)

/* Eleven years: any deadline still fits into 64 bits of nanoseconds. */
#define TIME_MAX (100000 * 3600 * NS_PER_S)

/* At least 64k, and a count of at least 2. */
#define ROTATE \
	"^0*(6553[6-9]|655[4-9][0-9]|65[6-9][0-9]{2}|6[6-9][0-9]{3}" \
	"|[7-9][0-9]{4}|[1-9][0-9]{5,}|(6[4-9]|[7-9][0-9]|[1-9][0-9]{2,})[kK]" \
	"|[1-9][0-9]*[mMgGtT])(,0*([2-9]|[1-9][0-9]+))?$"

/* Numbers of JSON that every reader reads alike. */
#define EXACT (1LL << 53)

/* Beside their words. A range that runs backwards is no form, and found by the
 * check alone; numbers that no machine has are. */
#define BLANKS  "[ \\t]*"
#define LIST(a) a "(," a ")*"
#define RANK    "([0-9]+|-0*[1-9][0-9]*)"
#define SHOW    "^(auto|all|first|none|" LIST(RANK "(-" RANK ")?") ")$"
#define CPU     "0*([0-9]{1,3}|[1-7][0-9]{3}|80[0-9]{2}|81[0-8][0-9]|819[01])"
#define BIND    "^(auto|none|core|" LIST(CPU "(-" CPU ")?") ")$"
#define DEVICE  "0*([0-9]{1,6}|1000000)"
#define DEVICES \
	"^(auto|none|" LIST(BLANKS \
		"(" DEVICE "(-" DEVICE ")?|G|GP|GPU|M|MI|MIG" \
		"|(GPU|MIG)-[A-Za-z0-9/-]{0,59})" BLANKS) ")$"
#define PROFILE  "(auto|none|torch|xla|xrt|pjrt|xrun)"
#define PROFILES "^" LIST(PROFILE) "$"
#define STDIN    "^(all|none|0*[0-9]{1,6})$"
#define VARIABLE \
	"(?!XRUN_|LOCAL_|XRT_|(RANK|WORLD_SIZE)(=|$))[^=\\x00-\\x20\\x7f]+"
#define LOG_DIR "^([^{}]|\\{\\{|\\}\\}|\\{(job|host)\\})+$"
#define LETTER  "[^{}\\x00-\\x08\\x0a-\\x1f\\x7f]"
#define BRACE \
	"(\\{\\{|\\}\\}|\\{(rank|local_rank|size|host|job|part|stream|time)\\})"
#define CLOCK  "(" LETTER "|" BRACE ")*\\{time\\}"
#define PREFIX "^(?!" CLOCK CLOCK ")" LETTER "*(" BRACE LETTER "*){0,24}$"

static const char *const platforms[] = { "auto", "cpu", "cuda", "tpu", NULL };

/* In the order of the enums of options.h. */
static const char *const holds[] = { "auto", "always", "never", NULL };
static const char *const buffers[] = { "line", "full", "none", NULL };
static const char *const collapses[] = { "auto", "on", "off", NULL };
static const char *const colors[] = { "auto", "always", "never", NULL };
static const char *const interrupts[] = { "stop", "ask", NULL };
static const char *const fulls[] = { "block", "drop", NULL };
static const char *const failures[] = { "stop", "continue", NULL };
static const char *const exits[] = { "first", "max", "rank0", NULL };

/* What a text may be beside its form. */
static const char *const words_devices[] = { "auto", "none", NULL };
static const char *const words_bind[] = { "auto", "none", "core", NULL };
static const char *const words_profile[] = { "auto", "none", "torch", "xla",
	"xrt", "pjrt", "xrun", NULL };
static const char *const words_show[] = { "auto", "all", "first", "none",
	NULL };
static const char *const words_prefix[] = { "auto", "none", NULL };
static const char *const words_stacks_on[] = { "hang", "timeout", "none",
	NULL };
static const char *const words_stdin[] = { "all", "none", NULL };

static bool
is_assignment(const char *value)
{
	return *value != '=' && strchr(value, '=') != NULL;
}

static bool
is_glob(const char *value)
{
	return *value != '\0' && strchr(value, '=') == NULL;
}

/* A row a paragraph; clang-format would put each at five tabs. */
/* clang-format off */
const struct opt run_options[] = {
	{ .name = "ranks",
		.part = true,
		.group = "How many, where",
		.letter = 'n',
		.alias = "np",
		.common = true,
		.type = OPT_INT,
		.arg = "N",
		.min = 1,
		.max = 1000000,
		.offset = AT(ranks),
		.help = "how many ranks to start",
		.text = "Start _N_ ranks. Without it: as many as the TPU worker list has devices on this machine, else one for each accelerator that can be seen, else 1. With several programs: _N_ of the program that follows, 1 without it." },
	{ .name = "chdir",
		.part = true,
		.common = true,
		.type = OPT_TEXT,
		.arg = "DIR",
		.offset = AT(chdir),
		.help = "run the program in DIR",
		.text = "Change to _DIR_ in each rank before its program starts. Of several programs, for the one that follows. Files that xrun itself writes are where it was started." },
	{ .name = "devices",
		.common = true,
		.type = OPT_TEXT,
		.arg = "LIST",
		.dflt = "auto",
		.words = words_devices,
		.check = mask_check,
		.pattern = DEVICES,
		.min = 0,
		.max = 1000000,
		.offset = AT(devices),
		.help = "accelerators to deal out: auto, none, 0,2-3",
		.text = "Deal the accelerators of _LIST_ to the ranks: indices and ranges such as 0,2-3, or UUIDs. *auto* takes all that can be seen, *none* hides them from the ranks." },
	{ .name = "platform",
		.type = OPT_TEXT,
		.dflt = "auto",
		.choices = platforms,
		.offset = AT(platform),
		.help = "kind of accelerator to look for",
		.text = "Look for this kind of accelerator only. *auto* takes the first kind that is there." },
	{ .name = "bind",
		.type = OPT_TEXT,
		.arg = "LIST",
		.dflt = "auto",
		.words = words_bind,
		.check = form_bind,
		.pattern = BIND,
		.min = 0,
		.max = 8191,
		.offset = AT(bind),
		.help = "processors: auto, none, core, 0-3,8",
		.text = "Bind ranks to processors. *core* gives each rank a core with all its hardware threads, spread over the machine in its order (rank r of N on C cores begins at core r\\*C/N), and round robin when there are more ranks. A list such as 0-3,8 is cut into equal shares in the order written; with more ranks than CPUs each has one, round robin. *auto* does what *core* does for several ranks of a program that is linked with libxrun, unless OMP_NUM_THREADS asks for threads, and leaves all others unbound; *none* binds nothing. Of cores and hardware threads, only those count that xrun itself may use. With *auto* and *core* processors of other jobs of xrun are passed over; when these have them all, *auto* binds nothing and *core* shares them." },
	{ .name = "any-ranks",
		.type = OPT_FLAG,
		.dflt = "no",
		.offset = AT(any_ranks),
		.help = "any number of ranks under a TPU worker list",
		.text = "Under a TPU worker list (XRT_TPU_CONFIG, XRT_LOCAL_WORKER) the number of ranks must be 1 or the number of devices of a machine. This lifts the rule." },
	{ .name = "template",
		.part = true,
		.type = OPT_FLAG,
		.dflt = "no",
		.offset = AT(template),
		.help = "replace {rank} and the like in arguments",
		.text = "Replace {rank}, {local_rank}, {size}, {node}, {host}, {job}, {attempt}, {part}, {part_rank} and {part_size} in the arguments of the program, rank by rank, by what the variable of that name is: *--template* _PROGRAM_ --out=run.{rank}. A brace of the text is doubled, {{ or }}, and any other name is an error. The name of the program stays as it is. Of several programs, for the one that follows." },
	{ .name = "detach",
		.letter = 'd',
		.type = OPT_FLAG,
		.dflt = "no",
		.offset = AT(detach),
		.help = "start the job, print its id, leave it running",
		.text = "Start the job, print its id on standard output once every rank was started, exit with 0 and leave it running: in a session of its own, without a terminal; Ctrl-C and SIGHUP do not reach it. What keeps it from starting is said as without *-d*, with the same exit status. Ranks have no standard input, and what they write is in their files only. What xrun itself has to say, and how the job ended, is in the file xrun.log beside them, see FILES in xrun(1); job.json tells its pid, and at the end its exit status. SIGTERM to that pid ends the job. Not with *--no-logs*. Inside of a rank it ends with the job of that rank at the latest." },
	{ .name = "job",
		.type = OPT_TEXT,
		.arg = "NAME",
		.no_variable = true,
		.check = form_job,
		.pattern = "^(?!latest$)[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$",
		.min = 0,
		.max = EXACT,
		.offset = AT(job),
		.help = "call the job NAME, not by four letters",
		.text = "Call the job _NAME_: up to 64 letters, digits, dots, hyphens and underscores, the first no dot or hyphen. If a job of that name has ended, this is its next attempt: its output stands beside the former in folder 1 and so on, and XRUN_ATTEMPT says which it is. If one runs, or if other users may write into the folder, xrun exits with 125. Under *--log-dir* the folder is DIR/NAME, or DIR if {job} is in it. Its folder stays, also where ranks wrote nothing: it counts the attempts. With *--no-logs* there is none: attempts are not counted, and nothing keeps two jobs of one name apart. Without a name: four letters and digits, or SLURM_JOB_ID inside of a Slurm job, whose second job is called SLURM_JOB_ID.2, and so on; these are jobs of their own, not attempts, and one whose ranks wrote nothing leaves neither folder nor number. There is no variable, since XRUN_JOB tells ranks the job that they are of." },

	{ .name = "env",
		.part = true,
		.group = "Environment",
		.common = true,
		.type = OPT_LIST,
		.arg = "NAME=VALUE",
		.valid = is_assignment,
		.check = env_check,
		.pattern = VARIABLE,
		.offset = AT(env),
		.help = "set a variable for the ranks (repeatable)",
		.text = "Set the variable for every rank, or with several programs for those of the one that follows; it wins over what is inherited and over what *--env-profile* sets. May be given several times; in XRUN_ENV, one a line. The variables by which a rank knows itself (XRUN_\\*, RANK, WORLD_SIZE, LOCAL_\\*, XRT_\\*) cannot be set." },
	{ .name = "env-pass",
		.part = true,
		.type = OPT_LIST,
		.arg = "GLOB",
		.valid = is_glob,
		.pattern = "^[^=]+$",
		.offset = AT(env_pass),
		.help = "variables to inherit, and no others",
		.text = "Of the variables that xrun was started with, ranks inherit only those whose name is _GLOB_, where \\* is any letters and ? is one; several are split by commas, or the option is given several times. Without it they inherit all. PATH, HOME, USER, LOGNAME, SHELL, TMPDIR, TZ, LANG, LC_\\*, TERM and LD_LIBRARY_PATH always pass, and what xrun itself sets is not touched. Of several programs, for the one that follows." },
	{ .name = "env-profile",
		.type = OPT_TEXT,
		.arg = "LIST",
		.dflt = "auto",
		.words = words_profile,
		.check = profiles_check,
		.pattern = PROFILES,
		.offset = AT(env_profile),
		.help = "frameworks whose variables ranks get",
		.text = "Set the variables of these frameworks beside xrun's own: *auto*, *none*, or names split by commas, such as torch,pjrt. A word that is no profile is answered with all there are." },
	{ .name = "port-hold",
		.type = OPT_CHOICE,
		.dflt = "auto",
		.choices = holds,
		.offset = AT(port_hold),
		.help = "how to keep the ports xrun hands out",
		.text = "Ports that xrun hands out are held until the job ends, bound but not listening, so that no other program takes them. *auto* is the same as *always*; *never* chooses a port and lets go, for a program that binds without SO_REUSEADDR." },

	{ .name = "log-dir",
		.group = "Output",
		.common = true,
		.type = OPT_TEXT,
		.arg = "DIR",
		.check = form_log_dir,
		.pattern = LOG_DIR,
		.offset = AT(log_dir),
		.help = "keep the ranks' output in DIR",
		.text = "Keep the files with the output of the ranks in _DIR_ if it is absent, or empty and yours alone to write into, else in a folder in it that is named after the job. {job} and {host} in _DIR_ are replaced, a brace of the text is doubled, and any other name is an error. Without it: in the state directory, see FILES in xrun(1)." },
	{ .name = "logs",
		.common = true,
		.type = OPT_FLAG,
		.dflt = "yes",
		.offset = AT(logs),
		.help = "keep no files of output",
		.text = "Keep no files. Then a slow reader of xrun's output makes the ranks wait, and what xrun held is lost when it is killed." },
	{ .name = "log-rotate",
		.type = OPT_TEXT,
		.arg = "SIZE[,COUNT]",
		.check = form_log_rotate,
		.pattern = ROTATE,
		.min = 64 * 1024,
		.max = EXACT,
		.offset = AT(log_rotate),
		.help = "begin a rank's file anew at SIZE; keep COUNT",
		.text = "Begin the file of a rank's output anew when it has _SIZE_ bytes (at least 64k; k, M, G and T are powers of 1024), behind a line end. The newest is called stdout, an older one stdout.OFFSET after the place of its first byte in the output, with an index of its own. With _COUNT_ (at least 2) no more than so many files of an output are kept, the newest included; what was removed before it was shown is counted. Without it all are." },
	{ .name = "log-full",
		.type = OPT_CHOICE,
		.dflt = "block",
		.choices = fulls,
		.offset = AT(log_full),
		.help = "when the disk is full: ranks wait, or bytes go",
		.text = "While there is no room for the ranks' output, *block* leaves it in their pipes: they wait, and nothing is lost while the job goes on. When it is told to end, or *--timeout* ends the wait, what found no room is lost: that is said, stands in the report (\"lost_bytes\"), and a job that went well else ends with 125, or 124 by *--timeout*. A file that will never grow (ulimit -f) ends the job at once, with 125. *drop* throws away what finds no room, and lets ranks go on; how many bytes of which rank is said at the end and stands in the report." },
	{ .name = "merge-stderr",
		.type = OPT_FLAG,
		.dflt = "no",
		.offset = AT(merge_stderr),
		.help = "standard error goes into standard output",
		.text = "Let standard error of a rank be its standard output: one pipe, one file, and what it wrote to both in the order in which it wrote." },
	{ .name = "show",
		.common = true,
		.type = OPT_TEXT,
		.arg = "RANKS",
		.dflt = "auto",
		.words = words_show,
		.check = ranks_check,
		.pattern = SHOW,
		.min = -EXACT,
		.max = EXACT,
		.offset = AT(show),
		.help = "ranks to show: all, first, none, 0,4-7",
		.text = "Show the output of these ranks: *all*, *first*, *none*, or a list such as 0,4-7,-1, where -1 is the last. *auto* shows all, but of more than 16 ranks on a terminal the standard output of rank 0 and everybody's standard error." },
	{ .name = "prefix",
		.common = true,
		.type = OPT_TEXT,
		.arg = "FORMAT",
		.no = "none",
		.dflt = "auto",
		.words = words_prefix,
		.check = form_prefix,
		.pattern = PREFIX,
		.offset = AT(prefix),
		.help = "what begins each line: '{rank}> '",
		.text = "Begin each line with _FORMAT_, in which {rank}, {local_rank}, {size}, {host}, {job}, {part} (its program, counted from 0), {stream} (stdout or stderr) and {time} (of arrival, such as 12:34:56.789) are replaced; a brace of the text is doubled. Numbers are padded to the widest. *auto* is the rank, of a job of one nothing; *none*, or *--no-prefix*, is nothing." },
	{ .name = "timestamps",
		.type = OPT_FLAG,
		.dflt = "no",
		.offset = AT(timestamps),
		.help = "begin each line with the time of its arrival",
		.text = "Begin each line with the local time at which it arrived, such as 12:34:56.789, whenever it is shown: a reader that is slow changes nothing. Nothing is added if *--prefix* has {time} already. The files hold what the ranks wrote, and no times." },
	{ .name = "collapse",
		.type = OPT_CHOICE,
		.dflt = "auto",
		.choices = collapses,
		.offset = AT(collapse),
		.help = "show equal lines of several ranks as one",
		.text = "Show a line that other ranks write, too, within 100 ms once, with all of them before it: 0-7. *auto* does so on a terminal, where the first is shown at once and then changed. *on* does it in pipes and files, too: there each line waits 100 ms for others. Where _FORMAT_ of *--prefix* has no {rank}, or {part}, nothing is collapsed." },
	{ .name = "buffer",
		.part = true,
		.type = OPT_CHOICE,
		.dflt = "line",
		.choices = buffers,
		.offset = AT(buffer),
		.help = "how programs buffer their output",
		.text = "How a program that writes through the C library or Python buffers its output: by *line*, so that lines show when they are written; in *full* blocks, for programs that write very much; or *none* at all. Of several programs, for the one that follows." },
	{ .name = "color",
		.type = OPT_CHOICE,
		.dflt = "auto",
		.choices = colors,
		.offset = AT(color),
		.help = "colour the ranks at the beginning of lines",
		.text = "Colour what stands before the lines. *auto* does so on a terminal, unless NO_COLOR is set." },
	{ .name = "pty",
		.type = OPT_FLAG,
		.dflt = "no",
		.offset = AT(pty),
		.help = "give each rank a terminal of its own",
		.text = "Give each rank a terminal of its own for standard input, output and error, of the size that xrun's has, else 80x24; of several ranks as many columns less as *--prefix* takes. What a rank writes is in the file stdout; there is no stderr. Of a single rank at a terminal every key goes to the program, Ctrl-C too, as with ssh -t; three times Ctrl-] within a second is xrun's own Ctrl-C. Ctrl-Z stops what a shell has started there; a program without one goes on, for nobody could continue it. Of several ranks, and of one with *--prefix* or *--timestamps*, what is typed goes to one of them, line by line, and Ctrl-C and Ctrl-Z are xrun's: they mean all ranks. Where standard input is a pipe or file, it is inherited as it is, and no key reaches a program." },
	{ .name = "quiet",
		.letter = 'q',
		.common = true,
		.type = OPT_FLAG,
		.dflt = "no",
		.offset = AT(quiet),
		.help = "only say what went wrong",
		.text = "Leave out xrun's own words, except for what went wrong." },
	{ .name = "verbose",
		.letter = 'v',
		.type = OPT_FLAG,
		.dflt = "no",
		.offset = AT(verbose),
		.help = "end with a table of what each rank used",
		.text = "End with a table of what each rank used: time, processor time, memory, bytes of output." },

	{ .name = "stdin",
		.group = "Input",
		.type = OPT_TEXT,
		.arg = "RANK",
		.dflt = "0",
		.words = words_stdin,
		.check = form_stdin,
		.pattern = STDIN,
		.min = 0,
		.max = OPTIONS_RANK_MAX,
		.offset = AT(input),
		.help = "who reads standard input: a rank, all, none",
		.text = "Which rank has xrun's standard input; the others have _/dev/null_. A pipe or file it inherits as it is, and xrun reads no byte of it; what is typed at a terminal is copied to it, while xrun is in the foreground. With *all* xrun reads and copies to every rank, no faster than the slowest of them; one that closes its input or ends is left out. *none*: nobody has it." },

	{ .name = "timeout",
		.group = "Ending",
		.common = true,
		.type = OPT_DURATION,
		.arg = "TIME",
		.dflt = "0",
		.min = 0,
		.max = TIME_MAX,
		.offset = AT(timeout),
		.help = "stop the job after TIME: 90s, 10m, 1.5h",
		.text = "Stop the job after _TIME_, such as 250ms, 30s, 10m or 1h30m, and exit with 124; 0 is never." },
	{ .name = "grace",
		.type = OPT_DURATION,
		.arg = "TIME",
		.dflt = "10s",
		.min = 0,
		.max = TIME_MAX,
		.offset = AT(grace),
		.help = "patience between stop signal and SIGKILL",
		.text = "Ranks that are told to stop have this long before they are killed; one that has to save may ask for more, see *xrun-protocol*(7). A job which was told to end waits no longer than this for a slow reader of its output, either: the rest is in the files." },
	{ .name = "stop-signal",
		.type = OPT_SIGNAL,
		.arg = "SIGNAL",
		.dflt = "TERM",
		.offset = AT(stop_signal),
		.help = "signal that tells ranks to stop",
		.text = "The signal that tells ranks to stop, by name or number." },
	{ .name = "interrupt",
		.type = OPT_CHOICE,
		.dflt = "stop",
		.choices = interrupts,
		.offset = AT(interrupt),
		.help = "what the first Ctrl-C does",
		.text = "What the first Ctrl-C does: *stop* sends SIGINT to the ranks and shows where they are, *ask* only shows. The next one sends *--stop-signal*, and SIGKILL after *--grace*; the one after that SIGKILL." },
	{ .name = "on-failure",
		.common = true,
		.type = OPT_CHOICE,
		.dflt = "stop",
		.choices = failures,
		.offset = AT(on_failure),
		.help = "when a rank fails: stop the others, or not",
		.text = "When a rank fails, *stop* the others, or let them *continue* to their own end." },
	{ .name = "exit-code",
		.type = OPT_CHOICE,
		.dflt = "first",
		.choices = exits,
		.offset = AT(exit_code),
		.help = "whose exit status becomes xrun's",
		.text = "What xrun exits with when ranks failed: with the status of the *first* that failed, with the largest (*max*), or with that of rank 0 (*rank0*; where xrun itself had to stop it, with the first)." },

	{ .name = "restarts",
		.group = "Supervision",
		.type = OPT_INT,
		.dflt = "0",
		.max = AGAIN_MOST,
		.arg = "N",
		.offset = AT(restarts),
		.help = "begin again after a failure, N times",
		.text = "When a rank failed and the others were stopped, start all ranks again, at most _N_ times: the next attempt has a log folder of its own (*xrun logs --attempt*), and XRUN_ATTEMPT is one more. A failure is forgotten as soon as a rank reports a step beyond any before (*xr_job*(3)), or *--restart-window* is over. The first restart is immediate; before later ones there is a pause of 1, 2, 4 ... 30 s. A program that cannot be executed (126, 127), a job that somebody stopped, and *--timeout*, which counts from the first attempt, are final." },
	{ .name = "restart-window",
		.type = OPT_DURATION,
		.dflt = "0",
		.max = TIME_MAX,
		.arg = "TIME",
		.offset = AT(restart_window),
		.help = "failures older than this are not counted",
		.text = "For *--restarts*: failures older than _TIME_ are not counted. 0 is the whole job." },
	{ .name = "stacks-on",
		.type = OPT_TEXT,
		.arg = "LIST",
		.dflt = "hang",
		.words = words_stacks_on,
		.check = form_stacks_on,
		.pattern = "^(none|" LIST("(hang|timeout)") ")$",
		.offset = AT(stacks_on),
		.help = "look where ranks are: hang, timeout, none",
		.text = "Before a job is ended for this, look where its ranks are: *hang*, *timeout*, both with a comma between, or *none*. The stacks of all threads, equal ones as one, are appended to stacks.txt beside the output of the ranks, and the oddest are shown; it takes 8 seconds at most. See *xrun-stacks*(1)." },

	{ .name = "report",
		.group = "Reports",
		.common = true,
		.type = OPT_TEXT,
		.arg = "FILE",
		.offset = AT(report),
		.help = "write what happened to FILE, as JSON",
		.text = "Write a true account of the job to _FILE_ when it has ended: every rank, how and when it ended, who failed first. JSON; *-* is standard output. A job that is refused has its reason in it. If _FILE_ cannot be written, xrun says so, and a job that went well exits with 125." },
	{ .name = "events",
		.type = OPT_TEXT,
		.arg = "FILE",
		.offset = AT(events),
		.help = "write each event to FILE, a JSON line each",
		.text = "Append to _FILE_, as it happens, one line of JSON for each start, end and stop. Several jobs may append to one file. If it cannot be written to the end, xrun says so, and a job that went well exits with 125." },

	{ .name = "dry-run",
		.group = "Asking",
		.common = true,
		.type = OPT_FLAG,
		.dflt = "no",
		.offset = AT(dry_run),
		.help = "print who would run where, start nothing",
		.text = "Print who would run where, with what, and start nothing." },
	{ .name = "show-env",
		.common = true,
		.type = OPT_INT,
		.maybe = true,
		.arg = "RANK",
		.dflt = "0",
		.min = 0,
		.max = 999999,
		.offset = AT(show_env_rank),
		.given = AT(show_env),
		.help = "print a rank's variables and their origin",
		.text = "Print every variable that _RANK_ would get and where it comes from, and start nothing." },
	{ .name = "json",
		.type = OPT_FLAG,
		.dflt = "no",
		.offset = AT(json),
		.help = "print what was asked for as JSON",
		.text = "Print what *--dry-run* or *--show-env* says as JSON." },
	{ .name = "config",
		.no_file = true,
		.type = OPT_TEXT,
		.arg = "FILE",
		.offset = AT(config),
		.help = "read settings from FILE, too",
		.text = "Read settings from _FILE_, in the form of xrun(5), on top of those in the files of the machine and of the user; *none* reads no file at all." },
	{ .name = "debug-faults",
		.argv_only = true,
		.no_file = true,
		.type = OPT_FLAG,
		.dflt = "no",
		.offset = AT(debug_faults),
		.help = "let the variable XRUN_FAULT break xrun",
		.text = "Honour the variable XRUN_FAULT, which delays, kills or fails xrun at a named point: for tests of xrun itself, see xrun-hacking(7). Only the command line can say so." },
	{ .name = "help",
		.letter = 'h',
		.no_file = true,
		.type = OPT_FLAG,
		.dflt = "no",
		.offset = AT(help),
		.help = "print a short help",
		.text = "Print a short help. *xrun help* prints all of it." },
	{ 0 },
};
/* clang-format on */

/* Names that are decided: they will mean this, and nothing else meanwhile. */
const struct opt_later run_options_later[] = {
	{ "ranks-per-node", 0 },
	{ "hosts", 0 },
	{ "hostfile", 0 },
	{ "via", 0 },
	{ "env-force", 0 },
	{ "heartbeat", 0 },
	{ "hang-timeout", 0 },
	{ "agent", 0 },
	{ "http", 0 },
	{ "on-event", 0 },
	{ "exec-on", 0 },
	{ "metrics-file", 0 },
	{ 0 },
};
