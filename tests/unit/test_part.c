/* SPDX-License-Identifier: Apache-2.0 */
/* test_part.c - the programs of a job, what is shown of them, and what their ranks get. */
#include <stdint.h>

#include "base/host.h"
#include "base/mem.h"
#include "base/status.h"
#include "launcher/host/own_file.h"
#include "launcher/host/processors.h"
#include "launcher/job/job.h"
#include "launcher/keeper/keeper.h"
#include "launcher/tcpstore/tcpstore_server.h"
#include "place/port.h"
#include "proc/elf.h"
#include "tests/unit/verb_rig.h"

char *__wrap_own_file(const char *name, const char *built);
enum elf_verdict __wrap_elf_probe(int dirfd, const char *path,
	const char *search, struct elf_facts *facts);
const char *__wrap_host_name(char *out, size_t cap);
enum xr_status __wrap_port_hold(struct port *port,
	const struct port_limits *limits, struct xr_error *err);
void __wrap_port_release(struct port *port);
enum xr_status __wrap_processors_bind(struct processors *p, const char *how,
	uint32_t ranks, uint32_t leases, struct xr_error *err);
void __wrap_processors_fini(struct processors *p);
int __wrap_tcpstore_server_listen(uint16_t port);
int __wrap_keeper_run(struct job *job, keeper_fn *fn);

static const char *no_file; /* is not where xrun is */
static uint32_t cores[2];   /* of the processors that are bound; 0: none are */
static bool no_store, no_port;

char *
__wrap_own_file(const char *name, const char *built)
{
	if (strncmp(name, "libxrun-", 8) == 0)
		cr_expect_str_eq(built, "../worker");
	if (strcmp(name, "python/xrun.py") == 0)
		cr_expect_str_eq(built, "../plugins");
	if (no_file != NULL && strcmp(name, no_file) == 0)
		return NULL;
	return xasprintf("/own/%s", name);
}

/* By the names of programs. */
enum elf_verdict
__wrap_elf_probe(int dirfd, const char *path, const char *search,
	struct elf_facts *facts)
{
	const char *name = strrchr(path, '/') + 1;

	cr_expect_eq(dirfd, AT_FDCWD);
	cr_expect_str_eq(search, getenv("PATH"));
	*facts = (struct elf_facts){ .needs_xrun = strcmp(name, "linked") == 0,
		.script = true };
	if (strncmp(name, "mpi", 3) == 0)
		snprintf(facts->mpi, sizeof(facts->mpi), "lib%s.so", name);
	snprintf(facts->name, sizeof(facts->name), "%s",
		strcmp(name, "script") == 0 ? "python3.11" : name);
	return strcmp(name, "static") == 0 ? ELF_STATIC : ELF_FITS;
}

const char *
__wrap_host_name(char *out, size_t cap)
{
	snprintf(out, cap, "here");
	return out;
}

enum xr_status
__wrap_port_hold(struct port *port, const struct port_limits *limits,
	struct xr_error *err)
{
	static uint16_t next = 4711;

	(void)limits;
	if (no_port)
		return fail(err, XR_E_NOTFOUND, "no port is free");
	*port = (struct port){ .fd = -1, .number = next++ };
	dprintf(STDERR_FILENO, "hold %u\n", port->number);
	return XR_OK;
}

void
__wrap_port_release(struct port *port)
{
	if (port->number != 0)
		dprintf(STDERR_FILENO, "release %u\n", port->number);
}

enum xr_status
__wrap_processors_bind(struct processors *p, const char *how, uint32_t ranks,
	uint32_t leases, struct xr_error *err)
{
	static struct bind_set sets[2];

	(void)err;
	dprintf(STDERR_FILENO, "bind %s %u %d\n", how, ranks, leases > 0);
	for (int i = 0; i < 2 && cores[i] != 0; i++) {
		sets[i].text = i == 0 ? "0-3" : "4";
		sets[i].cores = cores[i];
		p->bind.count++;
	}
	p->bind.sets = sets;
	return XR_OK;
}

void
__wrap_processors_fini(struct processors *p)
{
	(void)p;
}

int
__wrap_tcpstore_server_listen(uint16_t port)
{
	dprintf(STDERR_FILENO, "serve %u\n", port);
	return no_store ? -1 : open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int
__wrap_keeper_run(struct job *job, keeper_fn *fn)
{
	(void)fn;
	dprintf(STDOUT_FILENO, "store %d\n", job->tcpstore_fd != -1);
	for (uint32_t i = 0; i < job->part_count; i++)
		dprintf(STDOUT_FILENO,
			"%s first %u size %u dir %s python %d needs %d\n",
			job->parts[i].argv[0], job->parts[i].first,
			job->parts[i].size,
			job->parts[i].dir == NULL ? "-" : job->parts[i].dir,
			job->parts[i].python, job->parts[i].needs_xrun);
	job->page->closed = 1;
	state_fini(&job->state);
	return 0;
}

static void
clear(void)
{
	char home[PATH_MAX], path[PATH_MAX + 8];
	static const char *const kept[] = { "WORLD_SIZE", "OMP_NUM_THREADS",
		"XRUN_ENV" };
	const char *value[3];

	for (int i = 0; i < 3; i++)
		value[i] = getenv(kept[i]) != NULL ? strdup(getenv(kept[i])) :
						     NULL;
	snprintf(home, sizeof(home), "%s", getenv("HOME"));
	clearenv();
	setenv("HOME", home, 1);
	snprintf(path, sizeof(path), "%s/bin", home);
	setenv("PATH", path, 1);
	for (int i = 0; i < 3; i++)
		if (value[i] != NULL)
			setenv(kept[i], value[i], 1);
	setenv("XRUN_PLATFORM", "cpu", 1);
}

static void
begin(void)
{
	static const char *const programs[] = { "a", "b", "linked", "static",
		"mpi1", "mpi2", "python3", "script" };
	char name[32];

	verb_rig_make();
	cr_assert_eq(mkdir("bin", 0700), 0);
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		snprintf(name, sizeof(name), "bin/%s", programs[i]);
		folder_write(name, "#!/bin/sh\n", 0755);
	}
	cr_assert_eq(mkdir("dir", 0700), 0);
	verb_rig_first = clear;
}

TestSuite(part, .init = begin, .fini = folder_remove, .timeout = 60);

/* In @text each $ is the folder of the test. */
static const char *
here(const char *text)
{
	static char out[16384];
	size_t len = 0;

	for (out[0] = '\0'; *text != '\0'; text++)
		len += (size_t)(*text == '$' ?
				snprintf(out + len, sizeof(out) - len, "%s",
					folder) :
				snprintf(out + len, sizeof(out) - len, "%c",
					*text));
	return out;
}

#define HEAD  " rank  host              device            "
#define PORTS "hold 4711\nrelease 4711\n"
#define AGENT "/own/libxrun-preload.so"

Test(part, one_program)
{
	CALL("--dry-run", "a");
	EXPECT_SAID(0,
		here("1 rank (default), platform cpu; nothing was started\n\n" HEAD
		     "command\n"
		     "    0  here              cpu               a\n"
		     "\nprogram  $/bin/a\nagent    " AGENT "\n"),
		PORTS);
	CALL("--dry-run", "-n", "2", "--no-template", "a", "b c", "", "d'e",
		"-f=1.2:/,@%^+_", "{rank}");
	EXPECT_SAID(0,
		here("2 ranks (given), platform cpu; nothing was started\n\n" HEAD
		     "command\n"
		     "    0  here              cpu               a 'b c' '' 'd'\\''e' -f=1.2:/,@%^+_ '{rank}'\n"
		     "    1  here              cpu               a 'b c' '' 'd'\\''e' -f=1.2:/,@%^+_ '{rank}'\n"
		     "\nprogram  $/bin/a\nagent    " AGENT "\n"),
		PORTS);
	CALL("--dry-run", "--json", "-n", "2", "a", "b");
	EXPECT_SAID(0,
		here("{\"v\":1,\"size\":2,\"why\":\"given\",\"platform\":\"cpu\",\"program\":\"$/bin/a\",\"argv\":[\"a\",\"b\"],\"preload\":\"" AGENT
		     "\",\"ranks\":[{\"rank\":0,\"local_rank\":0,\"node\":0,\"host\":\"here\",\"device\":\"cpu\"},"
		     "{\"rank\":1,\"local_rank\":1,\"node\":0,\"host\":\"here\",\"device\":\"cpu\"}]}\n"),
		PORTS);
}

Test(part, several_programs)
{
	cores[0] = 3;
	cores[1] = 1;
	CALL("--dry-run", "--bind", "core", "-n", "2", "a", ":", "--chdir",
		"dir", "--template", "b", "{rank} of {size}", ":", "a");
	EXPECT_SAID(0,
		here("4 ranks of 3 programs (given), platform cpu; nothing was started\n\n" HEAD
		     "cpus      command\n"
		     "    0  here              cpu               0-3       a\n"
		     "    1  here              cpu               4         a\n"
		     "    2  here              cpu               0-3       b '2 of 4'\n"
		     "    3  here              cpu               4         a\n"
		     "\npart     0, ranks 0-1\nprogram  $/bin/a\nagent    " AGENT
		     "\n\npart     1, rank 2, in $/dir\nprogram  $/bin/b\nagent    " AGENT
		     "\n\npart     2, rank 3\nprogram  $/bin/a\nagent    " AGENT
		     "\n"),
		"bind core 4 1\n" PORTS);
	CALL("--dry-run", "--json", "--bind", "core", "-n", "2", "a", ":",
		"--chdir", "dir", "--template", "b", "{rank} of {size}");
	EXPECT_SAID(0,
		here("{\"v\":1,\"size\":3,\"why\":\"given\",\"platform\":\"cpu\",\"parts\":["
		     "{\"program\":\"$/bin/a\",\"argv\":[\"a\"],\"preload\":\"" AGENT
		     "\",\"first\":0,\"ranks\":2},"
		     "{\"program\":\"$/bin/b\",\"argv\":[\"b\",\"{rank} of {size}\"],\"preload\":\"" AGENT
		     "\",\"first\":2,\"ranks\":1,\"cwd\":\"$/dir\"}],\"ranks\":["
		     "{\"rank\":0,\"local_rank\":0,\"part\":0,\"node\":0,\"host\":\"here\",\"device\":\"cpu\",\"cpus\":\"0-3\"},"
		     "{\"rank\":1,\"local_rank\":1,\"part\":0,\"node\":0,\"host\":\"here\",\"device\":\"cpu\",\"cpus\":\"4\"},"
		     "{\"rank\":2,\"local_rank\":2,\"part\":1,\"node\":0,\"host\":\"here\",\"device\":\"cpu\",\"cpus\":\"0-3\",\"argv\":[\"b\",\"2 of 3\"]}]}\n"),
		"bind core 3 1\n" PORTS);
}

Test(part, the_folder_of_a_program_holds_for_it_alone)
{
	cr_assert_eq(mkdir("dir/sub", 0700), 0);
	folder_write("dir/sub/c", "#!/bin/sh\n", 0755);
	CALL("--chdir", "dir", "sub/c", ":", "--chdir", "dir/sub", "./c", ":",
		"a");
	cr_expect_eq(said.status, 0);
	cr_expect_str_eq(said.out,
		here("store 0\nsub/c first 0 size 1 dir $/dir python 0 needs 0\n"
		     "./c first 1 size 1 dir $/dir/sub python 0 needs 0\n"
		     "a first 2 size 1 dir - python 0 needs 0\n"));
	CALL("--chdir", "none", "a");
	EXPECT_SAID(125, "",
		"xrun: --chdir: none: No such file or directory\n");
	CALL("a", ":", "nothing");
	cr_expect_eq(said.status, 127);
}

/* What the dry run says of the agent. */
static const char *
agent(void)
{
	const char *at = strstr(said.out, "\nagent    ");
	static char line[200];

	if (at == NULL)
		return "";
	snprintf(line, sizeof(line), "%.*s", (int)strcspn(at + 10, "\n"),
		at + 10);
	return line;
}

Test(part, why_there_is_no_agent)
{
	CALL("--dry-run", "static");
	cr_expect_str_eq(agent(), "none: the program is statically linked");
	CALL("--dry-run", "--buffer", "full", "a");
	cr_expect_str_eq(agent(), "none (--buffer full)");
	CALL("--dry-run", "--buffer", "full", "--stacks-on", "crash", "a");
	cr_expect_str_eq(agent(), AGENT ":/own/libxrun-crash.so");
	cr_expect_str_eq(said.err, PORTS);
	CALL("--dry-run", "--stacks-on", "hang", "a");
	cr_expect_str_eq(agent(), AGENT);
	CALL("--dry-run", "--stacks-on", "crash", "static");
	cr_expect_str_eq(agent(), "none: the program is statically linked");
	cr_expect_str_eq(said.err,
		"xrun: --stacks-on crash: static cannot tell of a crash: it is statically linked\n" PORTS);
	no_file = "libxrun-preload.so";
	CALL("--dry-run", "a");
	cr_expect_str_eq(agent(),
		"none: the program is libxrun-preload.so is not where xrun is");
	CALL("--dry-run", "--stacks-on", "crash", "a");
	cr_expect_str_eq(said.err,
		"xrun: --stacks-on crash: a cannot tell of a crash: libxrun-preload.so is not where xrun is\n" PORTS);
	no_file = "libxrun-crash.so";
	CALL("--dry-run", "a");
	cr_expect_str_eq(agent(), AGENT);
	CALL("--dry-run", "--stacks-on", "crash", "a");
	cr_expect_str_eq(agent(),
		"none: the program is libxrun-crash.so is not where xrun is");
}

/* --- MPI -------------------------------------------------------------------- */

#define MPI(program, library, ranks) \
	"xrun: " program " needs " library \
	", and xrun does not serve MPI: each of " ranks \
	" ranks would be an MPI job of its own   try: mpiexec -n " ranks \
	" " program ", or --mpi singletons\n"

Test(part, a_program_of_mpi_has_one_rank)
{
	CALL("mpi1");
	cr_expect_eq(said.status, 0, "%s", said.err);
	CALL("-n", "2", "mpi1");
	EXPECT_SAID(125, "", MPI("mpi1", "libmpi1.so", "2"));
	CALL("-n", "2", "--mpi", "singletons", "mpi1");
	cr_expect_eq(said.status, 0, "%s", said.err);
	CALL("a", ":", "mpi2");
	cr_expect_eq(said.status, 0, "%s", said.err);
	CALL("-n", "7", "a", ":", "mpi2", ":", "-n", "3", "mpi1");
	EXPECT_SAID(125, "", MPI("mpi2", "libmpi2.so", "4"));
}

Test(part, python_may_run_a_module_of_mpi)
{
	static const struct {
		const char *arg[5];
		bool is;
	} rows[] = {
		{ { "-m", "mpi4py" }, true },
		{ { "-mmpi4py" }, true },
		{ { "-um", "mpi4py.run", "x" }, true },
		{ { "-ummpi4py" }, true },
		{ { "-m", "mpi4pyx" }, false },
		{ { "-m", "torch2" }, false },
		{ { "-m", "pytest.x" }, false },
		{ { "-m", "mpi" }, false },
		{ { "-m", "x", "-m", "mpi4py" }, false },
		{ { "-c", "mpi4py", "-m", "mpi4py" }, false },
		{ { "-uc", "-m", "mpi4py" }, false },
		{ { "-W", "m", "-m", "mpi4py" }, true },
		{ { "-Wm", "-m", "mpi4py" }, true },
		{ { "-X", "dev", "-mmpi4py" }, true },
		{ { "-Xdev", "-m", "mpi4py" }, true },
		{ { "-W", "-m", "mpi4py" }, false },
		{ { "-W" }, false },
		{ { "-m" }, false },
		{ { "--m", "-m", "mpi4py" }, true },
		{ { "--help-m", "mpi4py" }, false },
		{ { "-u", "-m", "mpi4py" }, true },
		{ { "x", "-m", "mpi4py" }, false },
		{ { "-", "-m", "mpi4py" }, true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *argv[10] = { (char *)"xrun", (char *)"-n", (char *)"2",
			(char *)"python3" };

		for (int k = 0; k < 5 && rows[i].arg[k] != NULL; k++)
			argv[4 + k] = (char *)rows[i].arg[k];
		verb_rig_call(argv);
		cr_expect_eq(said.status, rows[i].is ? 125 : 0, "%zu: %d %s", i,
			said.status, said.err);
	}
	CALL("-n", "2", "python3", "-m", "mpi4py");
	EXPECT_SAID(125, "", MPI("python3", "mpi4py", "2"));
	CALL("-n", "2", "script", "-m", "mpi4py");
	cr_expect_eq(said.status, 0, "%s", said.err);
}

/* --- variables ---------------------------------------------------------------- */

Test(part, the_variables_of_a_rank)
{
	setenv("WORLD_SIZE", "7", 1);
	setenv("XRUN_ENV", "C=3", 1);
	CALL("--show-env=2", "--job", "j", "-n", "2", "--restarts", "5", "a",
		":", "--env", "A=1 2", "--env", "PATH=/bin", "b");
	EXPECT_SAID(0,
		here("inherited          HOME=$\n"
		     "--env              PATH=/bin   (inherited: $/bin)\n"
		     "xrun               XRUN_JOB=j\n"
		     "xrun               XRUN_ATTEMPT=0\n"
		     "xrun               XRUN_RANK=2\n"
		     "xrun               XRUN_SIZE=3\n"
		     "xrun               XRUN_LOCAL_RANK=2\n"
		     "xrun               XRUN_LOCAL_SIZE=3\n"
		     "xrun               XRUN_NODE=0\n"
		     "xrun               XRUN_NODES=1\n"
		     "xrun               XRUN_HOST=here\n"
		     "xrun               XRUN_PART=1\n"
		     "xrun               XRUN_PART_RANK=0\n"
		     "xrun               XRUN_PART_SIZE=1\n"
		     "xrun               XRUN_DEVICE=cpu\n"
		     "xrun               XRUN_CONTROL_FD=97:0\n"
		     "xrun               XRUN_STORE=control:\n"
		     "xrun               XRUN_NO_MPI=3\n"
		     "profile torch      RANK=2\n"
		     "profile torch      WORLD_SIZE=3\n"
		     "profile torch      LOCAL_RANK=2\n"
		     "profile torch      LOCAL_WORLD_SIZE=3\n"
		     "profile torch      GROUP_RANK=0\n"
		     "profile torch      GROUP_WORLD_SIZE=1\n"
		     "profile torch      ROLE_NAME=default\n"
		     "profile torch      ROLE_RANK=2\n"
		     "profile torch      ROLE_WORLD_SIZE=3\n"
		     "profile torch      MASTER_ADDR=127.0.0.1\n"
		     "profile torch      MASTER_PORT=4711\n"
		     "profile torch      TORCHELASTIC_RUN_ID=j\n"
		     "profile torch      TORCHELASTIC_RESTART_COUNT=0\n"
		     "profile torch      TORCHELASTIC_MAX_RESTARTS=5\n"
		     "profile torch      TORCHELASTIC_USE_AGENT_STORE=False\n"
		     "profile torch      TORCH_NCCL_ASYNC_ERROR_HANDLING=1\n"
		     "profile torch      OMP_NUM_THREADS=1\n"
		     "profile torch      PYTHONUNBUFFERED=1\n"
		     "--env              A='1 2'\n"
		     "xrun               LD_PRELOAD=/own/libxrun-preload.so\n"
		     "xrun               ASAN_OPTIONS=verify_asan_link_order=0\n"
		     "xrun               PYTHONPATH=/own/python\n"
		     "removed            WORLD_SIZE   (the ranks of another torch launcher)\n"
		     "removed            XRUN_ENV   (an option of xrun; an xrun in a rank starts clean)\n"
		     "removed            XRUN_PLATFORM   (an option of xrun; an xrun in a rank starts clean)\n"),
		PORTS);
}

Test(part, variables_as_json)
{
	const char *begins;

	setenv("WORLD_SIZE", "7", 1);
	CALL("--show-env=1", "--json", "--job", "j", "--env-profile", "none",
		"--buffer", "full", "-n", "2", "--env", "PATH=/bin", "a");
	cr_expect_eq(said.status, 0);
	cr_expect_str_eq(said.err, "");
	begins = here(
		"{\"v\":1,\"rank\":1,\"variables\":[{\"name\":\"HOME\",\"value\":\"$\",\"source\":\"inherited\"},"
		"{\"name\":\"PATH\",\"value\":\"/bin\",\"source\":\"--env\",\"hides\":\"$/bin\"},"
		"{\"name\":\"XRUN_JOB\",\"value\":\"j\",\"source\":\"xrun\"},");
	cr_expect_eq(strncmp(said.out, begins, strlen(begins)), 0, "%s",
		said.out);
	cr_expect(strstr(said.out, "LD_PRELOAD") == NULL);
	cr_expect_str_eq(strstr(said.out, "],\"removed\":"),
		"],\"removed\":[{\"name\":\"WORLD_SIZE\",\"value\":\"7\",\"why\":\"the ranks of another torch launcher\"},{\"name\":\"XRUN_PLATFORM\",\"value\":\"cpu\",\"why\":\"an option of xrun; an xrun in a rank starts clean\"}]}\n");
	setenv("XRUN_ENV", "C=3", 1);
	CALL("--show-env", "a", ":", "--env", "D=4", "b");
	cr_expect(strstr(said.out, "\nXRUN_ENV           C=3\n") != NULL, "%s",
		said.out);
	CALL("--show-env=1", "a", ":", "--env", "D=4", "b");
	cr_expect(strstr(said.out, "\n--env              D=4\n") != NULL, "%s",
		said.out);
	CALL("--show-env=1", "a", ":", "b");
	cr_expect(strstr(said.out, "\nXRUN_ENV           C=3\n") != NULL, "%s",
		said.out);
}

Test(part, who_asks_for_threads_is_not_bound)
{
	CALL("--dry-run", "-n", "2", "linked");
	cr_expect_str_eq(said.err, "bind auto 2 1\n" PORTS);
	CALL("--dry-run", "linked");
	cr_expect_str_eq(said.err, PORTS);
	CALL("--dry-run", "-n", "2", "linked", ":", "a");
	cr_expect_str_eq(said.err, PORTS);
	CALL("--dry-run", "-n", "2", "--env", "OMP_NUM_THREADS=2", "linked");
	cr_expect_str_eq(said.err, PORTS);
	setenv("OMP_NUM_THREADS", "4", 1);
	CALL("--dry-run", "-n", "2", "linked");
	cr_expect_str_eq(said.err, PORTS);
	CALL("--dry-run", "-n", "2", "--env", "OMP_NUM_THREADS=1", "linked");
	cr_expect_str_eq(said.err, "bind auto 2 1\n" PORTS);
	setenv("OMP_NUM_THREADS", "1", 1);
	CALL("--dry-run", "-n", "2", "linked");
	cr_expect_str_eq(said.err, "bind auto 2 1\n" PORTS);
}

/* The value of a variable in what was shown. */
static const char *
value_of(const char *name)
{
	static char text[200];
	char *at = said.out;
	size_t len = strlen(name);

	while (at != NULL && *at != '\0') {
		at += 19;
		if (strncmp(at, name, len) == 0 && at[len] == '=') {
			snprintf(text, sizeof(text), "%.*s",
				(int)strcspn(at + len + 1, "\n"), at + len + 1);
			return text;
		}
		at = strchr(at, '\n');
		at = at == NULL ? NULL : at + 1;
	}
	return "-";
}

Test(part, ranks_have_threads_for_their_cores)
{
	CALL("--show-env", "-n", "2", "a");
	cr_expect_str_eq(value_of("OMP_NUM_THREADS"), "1");
	cores[0] = 3;
	CALL("--show-env", "-n", "2", "--bind", "core", "a");
	cr_expect_str_eq(value_of("OMP_NUM_THREADS"), "3");
	cores[1] = 2;
	CALL("--show-env", "-n", "2", "--bind", "core", "a");
	cr_expect_str_eq(value_of("OMP_NUM_THREADS"), "2");
	cores[1] = 5;
	CALL("--show-env", "-n", "2", "--bind", "core", "a");
	cr_expect_str_eq(value_of("OMP_NUM_THREADS"), "3");
}

/* --- ports -------------------------------------------------------------------- */

#define STORE "TORCHELASTIC_USE_AGENT_STORE"

Test(part, who_serves_the_store_of_torch)
{
	CALL("--show-env", "-n", "2", "python3", "x");
	cr_expect_str_eq(value_of(STORE), "True");
	cr_expect_str_eq(value_of("MASTER_PORT"), "4711");
	cr_expect_str_eq(said.err, PORTS);
	CALL("--show-env", "-n", "2", "script");
	cr_expect_str_eq(value_of(STORE), "True");
	CALL("--show-env", "-n", "2", "a", ":", "python3");
	cr_expect_str_eq(value_of(STORE), "True");
	CALL("--show-env", "-n", "2", "a");
	cr_expect_str_eq(value_of(STORE), "False");
	CALL("--show-env", "--port-hold", "serve", "-n", "2", "a");
	cr_expect_str_eq(value_of(STORE), "True");
	CALL("--show-env", "--port-hold", "always", "-n", "2", "python3");
	cr_expect_str_eq(value_of(STORE), "False");
	CALL("--show-env", "--port-hold", "never", "-n", "2", "python3");
	cr_expect_str_eq(value_of(STORE), "False");
	cr_expect_str_eq(said.err, PORTS "release 4711\n");
	CALL("python3");
	cr_expect_eq(strncmp(said.out, "store 1\n", 8), 0, "%s", said.out);
	cr_expect_eq(strncmp(said.err, "hold 4711\nserve 4711\n", 21), 0, "%s",
		said.err);
	no_store = true;
	CALL("python3");
	cr_expect_eq(strncmp(said.out, "store 0\n", 8), 0, "%s", said.out);
	CALL("--env-profile", "none", "python3");
	cr_expect_str_eq(said.err, "");
	no_port = true;
	CALL("a");
	EXPECT_SAID(125, "", "xrun: no port is free\n");
	CALL("--env-profile", "none", "a");
	cr_expect_eq(said.status, 0);
}
