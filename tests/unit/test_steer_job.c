/* SPDX-License-Identifier: Apache-2.0 */
/* test_steer_job.c - what a supervisor does for those who steer its job, and for ranks
 * that tell it of themselves. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/resource.h>
#include <sys/socket.h>

#include <criterion/criterion.h>

#include "tests/unit/steer_rig.h"

TestSuite(steer_job, .init = begin);

/* --- what is asked ------------------------------------------------------------ */

Test(steer_job, its_server_is_made_once)
{
	cr_expect_eq(played.opened, 1);
	cr_expect_str_eq(played.config.job, "train");
	cr_expect_eq(played.config.pid, getppid());
	cr_expect_eq(played.config.most, 64);
	cr_expect_eq(played.config.ctx, &job);
	steer_made(&job, 45);
	cr_expect_eq(played.opened, 1);
	done[0] = '\0';
	played.config.more(&job, &client);
	played.config.gone(&job, &client);
	cr_expect_str_eq(done, "more keys gone typist gone ");
}

Test(steer_job, each_question_has_its_answer)
{
	EXPECT_SAID(&client, "{'type':'status','id':7}", ":job,7,{\"now\":1} ");
	EXPECT_SAID(&client, "{'type':'wait','id':8}", "wait:8 ");
	EXPECT_SAID(&client, "{'type':'wait','id':9}",
		"wait:9 refuse:9,XR_E_STATE,wait: it waits already ");
	EXPECT_SAID(&client, "{'type':'restart','id':2}", "restart :done,2 ");
	played.no_restart = true;
	EXPECT_SAID(&client, "{'type':'restart','id':2}",
		"restart refuse:2,XR_E_STATE,restart: the job is being ended ");
	EXPECT_SAID(&client, "{'type':'store_delete','id':1,'key':'a'}",
		"keys:store_delete ");
	EXPECT_SAID(&of_rank, "{'type':'store_delete','id':1,'key':'a'}",
		"keys of rank:store_delete ");
}

Test(steer_job, a_job_is_stopped_or_hurried)
{
	EXPECT_SAID(&client, "{'type':'stop','id':3}",
		"stop:15 :done,3,12.5 s ");
	cr_expect_not(sup.told);
	sup.phase = PHASE_DELIVER;
	EXPECT_SAID(&client, "{'type':'stop','id':4}",
		"next:15 hurry :done,4,12.5 s ");
	cr_expect(sup.told);
}

Test(steer_job, a_signal_goes_to_the_groups_of_ranks)
{
	EXPECT_SAID(&client, "{'type':'signal','id':3,'signal':'USR1'}",
		"kill:-100,10 kill:-101,10 kill:-102,10 kill:-103,10 :done,3,count 4 ");
	ranks[1].pidfd = -1;
	ranks[2].foreign = true;
	played.no_kill = 103;
	EXPECT_SAID(&client, "{'type':'signal','id':3,'signal':'USR1'}",
		"kill:-100,10 kill:-103,10 :done,3,count 1 ");
	ranks[0].pidfd = 0;
	EXPECT_SAID(&client,
		"{'type':'signal','id':3,'signal':'TERM','ranks':'3-4,9'}",
		"kill:-100,15 :done,3,count 1 ");
	EXPECT_SAID(&client,
		"{'type':'signal','id':3,'signal':'TERM','ranks':'0,9'}",
		":done,3,count 0 ");
	EXPECT_SAID(&client, "{'type':'signal','id':3,'signal':'NONE'}",
		"refuse:3,XR_E_INVAL,signal: 'NONE' is none ");
	say(&client, "{'type':'signal','id':3,'signal':'TERM','ranks':'3-10'}");
	cr_expect_eq(strncmp(done, "refuse:3,", 9), 0, "%s", done);
}

/* --- what ranks tell ----------------------------------------------------------- */

Test(steer_job, what_a_rank_tells_is_kept)
{
	EXPECT_SAID(&of_rank, "{'type':'ready'}", "");
	cr_expect(ranks[1].ready);
	cr_expect_not(ranks[0].ready);
	cr_expect_eq(ranks[1].told_ns, NOW);
	cr_expect_eq(ranks[1].told, 0);
	EXPECT_SAID(&of_rank, "{'type':'progress','step':7,'id':5}",
		"rank:done,5 ");
	cr_expect_eq(ranks[1].told, 1);
	cr_expect_eq(ranks[1].step, 7);
	cr_expect_eq(ranks[1].best, 7);
	cr_expect_eq(ranks[1].total, -1);
	cr_expect_not_null(ranks[1].pace);
	say(&of_rank, "{'type':'progress','step':3,'total':9}");
	cr_expect_eq(ranks[1].step, 3);
	cr_expect_eq(ranks[1].best, 7);
	cr_expect_eq(ranks[1].total, 9);
	say(&of_rank, "{'type':'progress'}");
	cr_expect_eq(ranks[1].told, 3);
	cr_expect_eq(ranks[1].step, 3);
	cr_expect_eq(ranks[1].total, 9);
	EXPECT_SAID(&of_rank, "{'type':'grace','seconds':2.5}", "later:1,2.5 ");
	cr_expect_eq(ranks[1].told, 3);
	cr_expect_eq(ranks[0].told_ns, 0);
	cr_expect_null(ranks[0].pace);
	played.now = NOW + 1;
	EXPECT_SAID(&of_rank, "{'type':'lost','peer':2}", "");
	cr_expect_eq(ranks[1].told_ns, NOW); /* that was its agent */
}

Test(steer_job, metrics_are_numbers_and_not_too_long)
{
	char text[5000], name[4200];

	say(&of_rank, "{'type':'progress','metrics':{'loss':0.5,'x':-1}}");
	cr_assert_not_null(ranks[1].metrics);
	cr_expect_str_eq(ranks[1].metrics, "{\"loss\":0.5,\"x\":-1}");
	say(&of_rank, "{'type':'progress','metrics':{'a':1,'b':'two'}}");
	say(&of_rank, "{'type':'progress','metrics':{'a':{'b':2}}}");
	say(&of_rank, "{'type':'progress','metrics':[1,2]}");
	say(&of_rank, "{'type':'progress','metrics':7}");
	say(&of_rank, "{'type':'progress'}");
	cr_expect_str_eq(ranks[1].metrics, "{\"loss\":0.5,\"x\":-1}");
	say(&of_rank, "{'type':'progress','metrics':{}}");
	cr_expect_str_eq(ranks[1].metrics, "{}");
	memset(name, '1', sizeof(name));
	name[4096 - 6] = '\0'; /* {"a":1...} */
	snprintf(text, sizeof(text), "{'type':'progress','metrics':{'a':0.%s}}",
		name + 2);
	say(&of_rank, text);
	cr_expect_eq(strlen(ranks[1].metrics), 4096);
	snprintf(text, sizeof(text), "{'type':'progress','metrics':{'a':0.%s}}",
		name + 1);
	say(&of_rank, "{'type':'progress','metrics':{}}");
	say(&of_rank, text);
	cr_expect_str_eq(ranks[1].metrics, "{}");
	free(ranks[1].metrics);
}

/* --- connections ---------------------------------------------------------------- */

Test(steer_job, a_connection_of_a_rank_is_a_stream_of_this_machine)
{
	static const struct {
		int domain, type;
		bool is;
	} rows[] = { { AF_UNIX, SOCK_STREAM, true },
		{ AF_UNIX, SOCK_DGRAM, false },
		{ AF_UNIX, SOCK_SEQPACKET, false },
		{ AF_INET, SOCK_STREAM, false } };
	struct rlimit files;
	int fd;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fd = socket(rows[i].domain, rows[i].type | SOCK_CLOEXEC, 0);
		cr_assert_neq(fd, -1);
		cr_expect_eq(steer_is_stream(fd), rows[i].is, "row %u", i);
		done[0] = '\0';
		steer_admit(&job, fd, 2);
		cr_expect_str_eq(done, rows[i].is ? "admit:5 " : "");
		cr_expect_eq(fcntl(fd, F_GETFD) != -1, rows[i].is, "row %u", i);
		close(fd);
	}
	cr_expect_not(steer_is_stream(-1));
	getrlimit(RLIMIT_NOFILE, &files);
	job.limits.files_max = 1;
	cr_expect_eq(check_table(&job.limits, 4), 1);
	cr_expect(steer_spares(&job, (int)files.rlim_cur - 2));
	cr_expect_not(steer_spares(&job, (int)files.rlim_cur - 1));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	files.rlim_cur = (rlim_t)fd + 1;
	setrlimit(RLIMIT_NOFILE, &files);
	done[0] = '\0';
	steer_admit(&job, fd, 2);
	cr_expect_str_eq(done, "");
	cr_expect_eq(fcntl(fd, F_GETFD), -1);
}

Test(steer_job, what_is_no_socket_is_closed_beside_the_loop)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	steer_close(&job, fd);
	cr_expect_str_eq(done, "thread ");
	cr_expect_eq(fcntl(fd, F_GETFD), -1);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	played.no_thread = true;
	played.config.close(&job, fd);
	cr_expect_str_eq(done, "thread ");
	cr_expect_eq(fcntl(fd, F_GETFD), -1);
}

/* --- its life -------------------------------------------------------------------- */

#define NONE_SAID \
	"[xrun: there is no control socket, so nobody can ask or steer the job: "

Test(steer_job, the_socket_is_made_beside_the_loop)
{
	steer_begin(&job);
	cr_expect_str_eq(done, "thread ");
	cr_expect(sup.making);
	sup.making = false;
	sup.has_socket = true;
	steer_begin(&job);
	cr_expect_not(sup.making);
	sup.has_socket = false;
	sup.phase = PHASE_DELIVER;
	steer_begin(&job);
	cr_expect_not(sup.making);
	sup.phase = PHASE_RUN;
	played.no_thread = true;
	done[0] = '\0';
	steer_begin(&job);
	cr_expect_not(sup.making);
	cr_expect_str_eq(done, "http:Resource temporarily unavailable ");
	done[0] = '\0';
	job.opt.verbose = true;
	steer_begin(&job);
	cr_expect_str_eq(done,
		NONE_SAID "Resource temporarily unavailable] "
			  "http:Resource temporarily unavailable ");
	done[0] = '\0';
	sup.making = true;
	steer_made(&job, 45);
	cr_expect_not(sup.making);
	cr_expect_str_eq(done, "listen:45 http:- ");
}

Test(steer_job, whether_it_could_be_made_is_noted)
{
	played.makes = true;
	played.no_place = true;
	steer_begin(&job);
	cr_expect_str_eq(done, "thread sweep note:-1 ");
	cr_expect_str_eq(sup.no_ctl, "no place");
	cr_expect_eq(page.ctl.dir, 88);
	played.no_place = false;
	played.listens = -1;
	done[0] = '\0';
	steer_begin(&job);
	cr_expect_str_eq(done, "thread sweep note:-1 ");
	cr_expect_str_eq(sup.no_ctl, "No space left on device");
	cr_expect_eq(page.ctl.dir, 66);
	sup.no_ctl[0] = '\0';
	played.listens = 47;
	done[0] = '\0';
	steer_begin(&job);
	cr_expect_str_eq(done, "thread sweep http make note:47 ");
	cr_expect_str_eq(sup.no_ctl, "");
}

Test(steer_job, the_next_attempt_has_the_socket_of_the_last)
{
	steer_resume(&job);
	cr_expect_str_eq(done, "");
	cr_expect_not(sup.has_socket);
	page.listen = 46;
	steer_resume(&job);
	cr_expect_str_eq(done, "listen:46 http:- ");
	cr_expect(sup.has_socket);
	cr_expect_eq(page.listen, -1);
	done[0] = '\0';
	page.again.due = 1;
	steer_end(&job);
	cr_expect_str_eq(done, "unlisten:1 close:1 keys close ");
	cr_expect_eq(page.listen, 33);
	cr_expect_eq(page.ctl.dir, 88);
}

Test(steer_job, without_a_server_a_socket_is_closed)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	sup.ctl = NULL;
	played.no_server = true;
	steer_made(&job, fd);
	cr_expect_str_eq(done, "http:- ");
	cr_expect_eq(fcntl(fd, F_GETFD), -1);
}

Test(steer_job, at_the_end_all_is_told_and_freed)
{
	say(&of_rank, "{'type':'progress','step':7,'metrics':{'a':1}}");
	done[0] = '\0';
	steer_end(&job);
	cr_expect_str_eq(done, "end:1,5,failure close:1 keys close remove ");
	cr_expect_null(sup.ctl);
	cr_expect_eq(page.ctl.dir, -1);
	cr_expect_null(ranks[1].metrics);
	cr_expect_null(ranks[1].pace);
	page.ctl.dir = 88;
	played.no_remove = true;
	done[0] = '\0';
	steer_end(&job);
	cr_expect_str_eq(done, "end:0,5,failure close:0 keys close remove ");
	cr_expect_eq(page.ctl.dir, 88);
}

Test(steer_job, a_socket_that_is_being_made_is_waited_for)
{
	sup.making = true;
	played.notes = 1;
	played.step = NS_PER_MS * 100;
	steer_end(&job);
	cr_expect_str_eq(done,
		"901 ms take 801 ms take http: end:1,5,failure close:1 keys close remove ");
	cr_expect_not(sup.making);
	done[0] = '\0';
	sup.making = true;
	played.notes = 100;
	played.step = NS_PER_S / 2; /* a second, and no longer */
	steer_end(&job);
	cr_expect_str_eq(done,
		"501 ms take end:0,5,failure close:0 keys close remove ");
}
