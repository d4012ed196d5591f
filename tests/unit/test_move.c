/* SPDX-License-Identifier: Apache-2.0 */
/* test_move.c - what becomes of a stream's bytes: each call that is made for them, in order. */
#include "tests/unit/move_rig.h"

#define NEVER UINT64_MAX

static void
begin(void)
{
	alarm(20); /* where a loop has no end */
	memset(&is, 0, sizeof(is));
	is.chunk = is.fill_most = 1000000;
	is.reserve = NEVER;
	for (int i = 0; i < 4; i++)
		is.piece[i] = NEVER;
	is.fault = -1;
	is.wall = 5;
	is.now = 100 * NS_PER_S;
	share = raw_share_new(2, 3, 80);
	cr_assert_not_null(share);
	for (int i = 0; i < 4; i++)
		share->slot[i].pipe = 10 + i;
	slot = &share->slot[0];
	memset(streams, 0, sizeof(streams));
	m = (struct mover){ .epoll = 70,
		.large = NEVER,
		.stream = streams,
		.config = { .share = share,
			.notes = &the_notes,
			.sink = { (struct sink *)&a_sink,
				(struct sink *)&a_sink },
			.files_max = 2 } };
}

TestSuite(move, .init = begin);

static void
expect_told(int at, const char *want)
{
	cr_expect_str_eq(told, want, "line %d: %s", at, told);
	told[0] = '\0';
	told_len = 0;
}

#define TOLD(want) expect_told(__LINE__, want)

/* Rank 3's stdout has something, or not. */
static void
serve(uint32_t stream, long waiting)
{
	is.waiting = waiting;
	move_serve(&m, stream, EPOLLIN);
}

static void
terminal(void)
{
	slot->tty = 20;
	slot->fill = 21;
}

/* --- what is watched ------------------------------------------------------ */

Test(move, a_pipe_or_its_terminal_is_watched)
{
	cr_expect(move_listen(&m, 1));
	move_deaf(&m, 1);
	is.writer = true;
	cr_expect(move_has_writer(&m, 1));
	TOLD("listen 11 as 1 deaf 11 writer 11? ");
	terminal();
	cr_expect(move_listen(&m, 0));
	move_deaf(&m, 0);
	is.writer = false;
	cr_expect_not(move_has_writer(&m, 0));
	slot->tty = 0;
	is.sys_epoll = EPERM;
	cr_expect_not(move_listen(&m, 0));
	cr_expect_eq(errno, EPERM);
	TOLD("listen 20 as 0 deaf 20 writer 20? listen 0 as 0 ");
}

/* --- moves ------------------------------------------------------------------ */

Test(move, a_move_is_told_to_index_reserve_and_sink)
{
	serve(2, 7);
	TOLD("open 80/8 piece 2 of 50 move 12>50 spend 7 at 5 index 80/8 to 7 at 5 grew 2 of 50 to 7 ");
	cr_expect_eq(share->slot[2].moved, 7);
	cr_expect_eq(share->slot[2].file, 50);
	cr_expect_eq(streams[2].last_ns, 5);
	cr_expect_eq(m.written, 7);
	cr_expect_eq(m.files, 1);
	is.wall = 6;
	is.chunk = 2;
	serve(2, 3);
	TOLD("piece 2 of 50 move 12>50 spend 2 at 6 index 80/8 to 9 at 6 grew 2 of 50 to 9 ");
	cr_expect_eq(share->slot[2].moved, 9);
	cr_expect_eq(streams[2].last_ns, 6);
	cr_expect_eq(m.written, 9);
	serve(2, 0);
	TOLD("piece 2 of 50 move 12>50 ");
	is.sys_move = EINTR;
	serve(2, 3);
	TOLD("piece 2 of 50 move 12>50 ");
	cr_expect_not(streams[2].stalled);
}

Test(move, as_many_files_are_kept_open_as_there_may)
{
	for (uint32_t i = 0; i < 3; i++)
		serve(i, 1);
	TOLD("open 80/6 piece 0 of 50 move 10>50 spend 1 at 5 index 80/6 to 1 at 5 grew 0 of 50 to 1 open 80/7 piece 1 of 50 move 11>50 spend 1 at 5 index 80/7 to 1 at 5 grew 1 of 50 to 1 open 80/8 piece 2 of 50 move 12>50 shut 50 spend 1 at 5 index 80/8 to 1 at 5 grew 2 of -1 to 1 ");
	cr_expect_eq(m.files, 2);
	cr_expect_eq(share->slot[1].file, 50);
	cr_expect_eq(share->slot[2].file, -1);
	slot->file = 0;
	serve(0, 1);
	TOLD("piece 0 of 0 move 10>0 spend 1 at 5 index 80/6 to 2 at 5 grew 0 of 0 to 2 ");
}

Test(move, who_has_no_sink_is_displayed_nowhere)
{
	m.config.sink[1] = NULL;
	serve(1, 1);
	TOLD("open 80/7 piece 1 of 50 move 11>50 spend 1 at 5 index 80/7 to 1 at 5 ");
	is.sys_move = ENOSPC;
	serve(1, 1);
	TOLD("piece 1 of 50 move 11>50 watch 11 as 1 edges peek 11 FULL 1 28 ");
}

Test(move, the_first_byte_is_told_once)
{
	m.tell_first = true;
	serve(0, 0);
	TOLD("open 80/6 piece 0 of 50 move 10>50 ");
	cr_expect(m.tell_first);
	serve(0, 1);
	TOLD("piece 0 of 50 move 10>50 spend 1 at 5 index 80/6 to 1 at 5 grew 0 of 50 to 1 FIRST 0 0 ");
	cr_expect_not(m.tell_first);
	serve(0, 1);
	TOLD("piece 0 of 50 move 10>50 spend 1 at 5 index 80/6 to 2 at 5 grew 0 of 50 to 2 ");
}

Test(move, much_output_is_told_at_ten_times_each)
{
	m.large = 10ull << 30;
	m.written = m.large - 2;
	serve(0, 1);
	TOLD("open 80/6 piece 0 of 50 move 10>50 spend 1 at 5 index 80/6 to 1 at 5 grew 0 of 50 to 1 ");
	serve(0, 1);
	TOLD("piece 0 of 50 move 10>50 spend 1 at 5 LARGE 10 0 index 80/6 to 2 at 5 grew 0 of 50 to 2 ");
	cr_expect_eq(m.large, 100ull << 30);
	cr_expect_eq(share->large, 100ull << 30);
	m.large = NEVER / 10 + 1;
	m.written = m.large;
	serve(0, 1);
	TOLD("piece 0 of 50 move 10>50 spend 1 at 5 LARGE 1717986918 0 index 80/6 to 3 at 5 grew 0 of 50 to 3 ");
	cr_expect_eq(m.large, NEVER);
}

Test(move, the_end_of_a_pipe)
{
	is.at_end = true;
	slot->file = 30;
	slot->moved = 4;
	serve(0, 0);
	TOLD("piece 0 of 30 move 10>30 index end 80/6 deaf 10 close 10 grew 0 of 30 to 4 eof (EOF 0) ");
	cr_expect_eq(slot->pipe, -1);
	serve(0, 5);
	TOLD("");
	/* It hung up without bytes. */
	move_serve(&m, 1, EPOLLHUP);
	TOLD("index end 80/7 deaf 11 close 11 grew 1 of -1 to 0 eof (EOF 1) ");
	/* It says nothing, and there is no file yet. */
	is.waiting = 0;
	move_serve(&m, 2, EPOLLIN | EPOLLHUP);
	TOLD("index end 80/8 deaf 12 close 12 grew 2 of -1 to 0 eof (EOF 2) ");
	/* With bytes, or after some, the file is asked. */
	is.waiting = 1;
	move_serve(&m, 3, EPOLLIN | EPOLLHUP);
	TOLD("open 80/9 piece 3 of 50 move 13>50 spend 1 at 5 index 80/9 to 1 at 5 grew 3 of 50 to 1 ");
	is.waiting = 0;
	move_serve(&m, 3, EPOLLIN | EPOLLHUP);
	TOLD("piece 3 of 50 move 13>50 index end 80/9 deaf 13 close 13 grew 3 of 50 to 1 eof (EOF 3) ");
}

Test(move, faults_have_their_places)
{
	fault_armed = true;
	serve(2, 1);
	TOLD("fault 0 of 1 open 80/8 piece 2 of 50 fault 1 of 1 move 12>50 fault 2 of 1 spend 1 at 5 fault 3 of 1 index 80/8 to 1 at 5 grew 2 of 50 to 1 ");
	serve(2, 1);
	TOLD("piece 2 of 50 fault 1 of 1 move 12>50 fault 2 of 1 spend 1 at 5 fault 3 of 1 index 80/8 to 2 at 5 grew 2 of 50 to 2 ");
	is.fault = FAULT_MOVE_BEFORE;
	serve(2, 1);
	TOLD("piece 2 of 50 fault 1 of 1 fault 2 of 1 watch 12 as 2 edges peek 12 show 2 at 2 1p FULL 2 6 ");
	is.fault = FAULT_MOVE_OPEN;
	serve(3, 1);
	TOLD("fault 0 of 1 watch 13 as 3 edges peek 13 show 3 at 0 1p FULL 3 6 ");
	is.fault = FAULT_MOVE_LARGE;
	m.large = 10ull << 30;
	streams[2] = (struct stream){ 0 };
	serve(2, 1);
	TOLD("piece 2 of 50 fault 1 of 1 move 12>50 fault 2 of 1 spend 1 at 5 fault 3 of 1 LARGE 10 0 index 80/8 to 3 at 5 grew 2 of 50 to 3 ");
	fault_armed = false;
}

/* --- pieces ----------------------------------------------------------------- */

Test(move, a_piece_takes_what_it_has_room_for)
{
	is.piece[0] = 3;
	is.reserve = 4;
	serve(0, 9);
	TOLD("open 80/6 piece 0 of 50 move 10>50 3 spend 3 at 5 index 80/6 to 3 at 5 grew 0 of 50 to 3 ");
	is.pieces = 0;
	is.piece[0] = 5;
	serve(0, 9);
	TOLD("piece 0 of 50 move 10>50 4 spend 4 at 5 index 80/6 to 7 at 5 grew 0 of 50 to 7 ");
}

Test(move, a_full_piece_is_cut)
{
	slot->file = 30;
	slot->moved = 8;
	slot->start = 2;
	is.piece[0] = 0;
	is.piece[1] = 6;
	serve(0, 9);
	TOLD("piece 0 of 30 cut 0 of 30 index1 cut 80/6 from 2 piece 0 of 30 move 10>30 6 spend 6 at 5 index 80/6 to 14 at 5 grew 0 of 30 to 14 ");
	cr_expect_eq(slot->moved, 14);
	cr_expect_eq(streams[0].cut_again, 0);
}

Test(move, a_piece_that_cannot_be_cut_grows)
{
	slot->file = 30;
	slot->moved = 8;
	share->rule.size = 100;
	is.piece[0] = is.piece[1] = 0;
	is.piece[2] = 1;
	is.sys_cut = EACCES;
	serve(0, 9);
	TOLD("piece 0 of 30 cut 0 of 30 move 10>30 spend 9 at 5 index 80/6 to 17 at 5 grew 0 of 30 to 17 ");
	cr_expect_eq(streams[0].cut_again, 108);
	serve(0, 90);
	TOLD("move 10>30 spend 90 at 5 index 80/6 to 107 at 5 grew 0 of 30 to 107 ");
	serve(0, 1);
	TOLD("move 10>30 spend 1 at 5 index 80/6 to 108 at 5 grew 0 of 30 to 108 ");
	cr_expect_eq(slot->moved, 108);
	serve(0, 1);
	TOLD("piece 0 of 30 cut 0 of 30 move 10>30 spend 1 at 5 index 80/6 to 109 at 5 grew 0 of 30 to 109 ");
	cr_expect_eq(streams[0].cut_again, 208);
	is.sys_cut = 0;
	slot->moved = 208;
	is.pieces = 2;
	serve(0, 9);
	TOLD("piece 0 of 30 move 10>30 1 spend 1 at 5 index 80/6 to 209 at 5 grew 0 of 30 to 209 ");
}

/* --- no room ------------------------------------------------------------------ */

Test(move, without_room_the_bytes_stay_and_are_displayed)
{
	is.sys_move = ENOSPC;
	slot->file = 30;
	serve(0, 4);
	TOLD("piece 0 of 30 move 10>30 watch 10 as 0 edges peek 10 show 0 at 0 4p FULL 0 28 ");
	cr_expect(streams[0].stalled);
	cr_expect(streams[0].told);
	cr_expect_eq(streams[0].sys, ENOSPC);
	cr_expect_eq(streams[0].told_ns, is.now);
	cr_expect_eq(m.stalled, 1);
	serve(0, 5);
	TOLD("fill peek 10 show 0 at 0 5p ");
	is.now += 60 * NS_PER_S - 1;
	move_retry(&m);
	TOLD("piece 0 of 30 move 10>30 peek 10 show 0 at 0 5p ");
	is.now++;
	is.sys_move = EDQUOT;
	move_retry(&m);
	TOLD("piece 0 of 30 move 10>30 peek 10 show 0 at 0 5p FULL 0 122 ");
	cr_expect_eq(m.stalled, 1);
	cr_expect_eq(streams[0].sys, EDQUOT);
	is.sys_move = 0;
	move_retry(&m);
	TOLD("piece 0 of 30 move 10>30 spend 5 at 5 index 80/6 to 5 at 5 grew 0 of 30 to 5 ROOM 0 0 watch 10 as 0 ");
	cr_expect_eq(m.stalled, 0);
	cr_expect_not(streams[0].stalled);
	cr_expect_not(streams[0].told);
	move_retry(&m);
	TOLD("");
}

Test(move, the_reserve_is_like_a_full_disk)
{
	slot->file = 30;
	is.reserve = 0;
	serve(0, 4);
	TOLD("watch 10 as 0 edges peek 10 show 0 at 0 4p FULL 0 28 ");
	cr_expect_eq(streams[0].sys, ENOSPC);
	is.reserve = 1;
	move_retry(&m);
	TOLD("piece 0 of 30 move 10>30 1 spend 1 at 5 index 80/6 to 1 at 5 grew 0 of 30 to 1 ROOM 0 0 watch 10 as 0 ");
	/* An end needs no room. */
	is.reserve = 0;
	is.at_end = true;
	slot->moved = 4;
	serve(0, 0);
	TOLD("piece 0 of 30 move 10>30 1 index end 80/6 deaf 10 close 10 grew 0 of 30 to 4 eof (EOF 0) ");
}

Test(move, a_stream_that_ended_is_not_tried_again)
{
	streams[1].stalled = streams[2].stalled = true;
	share->slot[1].pipe = -1;
	share->slot[2].pipe = 0;
	m.stalled = 2;
	is.waiting = 1;
	move_retry(&m);
	TOLD("open 80/8 piece 2 of 50 move 0>50 spend 1 at 5 index 80/8 to 1 at 5 grew 2 of 50 to 1 watch 0 as 2 ");
	cr_expect_eq(m.stalled, 1);
	share->slot[3].pipe = 0;
	serve(3, 1);
	TOLD("open 80/9 piece 3 of 50 move 0>50 spend 1 at 5 index 80/9 to 1 at 5 grew 3 of 50 to 1 ");
}

Test(move, a_file_that_will_never_grow_is_not_waited_for)
{
	is.sys_move = EFBIG;
	slot->file = 30;
	is.chunk = 3;
	serve(0, 4);
	TOLD("piece 0 of 30 move 10>30 take 10 show 0 at 0 3t dropped fill take 10 show 0 at 0 1t dropped fill lose 4 27 FULL 0 27 ");
	cr_expect(streams[0].dropping);
	cr_expect_not(streams[0].stalled);
	cr_expect_eq(slot->dropped, 0);
	serve(0, 2);
	TOLD("piece 0 of 30 move 10>30 take 10 show 0 at 0 2t dropped fill lose 2 27 ");
	is.sys_move = 0;
	serve(0, 2);
	TOLD("piece 0 of 30 move 10>30 spend 2 at 5 index 80/6 to 2 at 5 grew 0 of 30 to 2 ROOM 0 0 ");
	cr_expect_not(streams[0].dropping);
}

Test(move, a_stalled_stream_that_is_thrown_away_goes_on)
{
	slot->file = 30;
	is.sys_move = EIO;
	serve(0, 4);
	TOLD("piece 0 of 30 move 10>30 watch 10 as 0 edges peek 10 show 0 at 0 4p FULL 0 5 ");
	is.sys_move = EFBIG;
	move_retry(&m);
	TOLD("piece 0 of 30 move 10>30 take 10 show 0 at 0 4t dropped fill lose 4 27 FULL 0 27 watch 10 as 0 ");
	cr_expect_eq(m.stalled, 0);
}

Test(move, what_may_be_dropped_is_dropped_and_counted)
{
	m.config.drop = true;
	slot->file = 30;
	is.sys_move = ENOSPC;
	is.chunk = 3;
	serve(0, 4);
	TOLD("piece 0 of 30 move 10>30 take 10 show 0 at 0 3t dropped fill take 10 show 0 at 0 1t dropped fill FULL 0 28 ");
	cr_expect_eq(slot->dropped, 4);
	serve(0, 2);
	TOLD("piece 0 of 30 move 10>30 take 10 show 0 at 0 2t dropped fill ");
	cr_expect_eq(slot->dropped, 6);
	is.sys_move = EIO; /* no matter of room */
	serve(0, 2);
	TOLD("piece 0 of 30 move 10>30 watch 10 as 0 edges FULL 0 5 ");
	cr_expect(streams[0].stalled);
	cr_expect_eq(slot->dropped, 6);
}

Test(move, a_megabyte_is_thrown_away_in_a_turn)
{
	m.config.drop = true;
	m.config.sink[0] = NULL;
	slot->file = 30;
	is.sys_move = ENOSPC;
	is.chunk = RAW_TAKE;
	quiet = true;
	serve(0, 2 << 20);
	cr_expect_eq(slot->dropped, 1 << 20);
	cr_expect_eq(is.waiting, 1 << 20);
	is.chunk = RAW_TAKE - 1;
	serve(0, 2 << 20);
	cr_expect_eq(slot->dropped, (1 << 20) + 17 * (RAW_TAKE - 1));
	is.sys_take = EIO;
	serve(0, 5);
	cr_expect_eq(slot->dropped, (1 << 20) + 17 * (RAW_TAKE - 1));
}

/* --- ended jobs are removed first --------------------------------------------- */

Test(move, ended_jobs_are_removed_before_anything_is_reported)
{
	m.config.reclaim = true;
	slot->file = 30;
	is.sys_move = ENOSPC;
	serve(0, 4);
	TOLD("piece 0 of 30 move 10>30 RECLAIM 0 28 watch 10 as 0 edges peek 10 show 0 at 0 4p ");
	cr_expect_eq(m.reclaim, RECLAIM_ASKED);
	cr_expect_eq(m.reclaim_ns, is.now);
	cr_expect_not(streams[0].told);
	move_retry(&m);
	TOLD("piece 0 of 30 move 10>30 peek 10 show 0 at 0 4p ");
	move_reclaimed(&m, false);
	TOLD("piece 0 of 30 move 10>30 peek 10 show 0 at 0 4p FULL 0 28 ");
	cr_expect_eq(m.reclaim, RECLAIM_OVER);
	cr_expect_not(m.reclaim_freed);
	move_reclaimed(&m, true);
	TOLD("");
	cr_expect_not(m.reclaim_freed);
	is.now += 10 * NS_PER_S - 1;
	move_retry(&m);
	TOLD("piece 0 of 30 move 10>30 peek 10 show 0 at 0 4p ");
	is.now += 1;
	move_retry(&m);
	TOLD("piece 0 of 30 move 10>30 RECLAIM 0 28 peek 10 show 0 at 0 4p ");
	cr_expect_eq(m.reclaim, RECLAIM_ASKED);
	cr_expect_eq(m.reclaim_ns, is.now);
	is.sys_move = 0;
	move_reclaimed(&m, true);
	TOLD("piece 0 of 30 move 10>30 spend 4 at 5 index 80/6 to 4 at 5 grew 0 of 30 to 4 ROOM 0 0 watch 10 as 0 ");
	cr_expect_eq(m.reclaim, RECLAIM_NONE);
	cr_expect(m.reclaim_freed);
	/* What frees nothing is not asked again at once. */
	m.reclaim = RECLAIM_OVER;
	m.reclaim_freed = false;
	serve(0, 1);
	cr_expect_eq(m.reclaim, RECLAIM_OVER);
}

Test(move, only_room_is_asked_for)
{
	m.config.reclaim = m.config.drop = true;
	slot->file = 30;
	is.sys_move = EIO;
	serve(0, 4);
	TOLD("piece 0 of 30 move 10>30 watch 10 as 0 edges FULL 0 5 ");
	cr_expect_eq(m.reclaim, RECLAIM_NONE);
	is.sys_move = EDQUOT;
	move_retry(&m);
	TOLD("piece 0 of 30 move 10>30 RECLAIM 0 122 ");
	cr_expect_eq(slot->dropped, 0);
	move_reclaimed(&m, true);
	TOLD("piece 0 of 30 move 10>30 take 10 show 0 at 0 4t dropped fill FULL 0 122 watch 10 as 0 ");
	cr_expect_eq(slot->dropped, 4);
}

/* --- without a folder ------------------------------------------------------------ */

Test(move, without_its_folder_a_file_has_no_name)
{
	is.sys_open = ESTALE;
	serve(0, 4);
	TOLD("open 80/6 GONE 0 116 nameless in /tmp piece 0 of 60 move 10>60 spend 4 at 5 index 80/6 to 4 at 5 grew 0 of 60 to 4 ");
	cr_expect(m.gone);
	cr_expect_eq(slot->file, 60);
	cr_expect_eq(m.files, 1);
	is.sys_file = EROFS;
	serve(1, 3);
	TOLD("open 80/7 nameless in /tmp take 11 show 1 at 0 3t dropped lose 3 116 ");
	cr_expect(streams[1].discarded);
	cr_expect_eq(share->slot[1].moved, 0);
	serve(1, 3);
	TOLD("take 11 show 1 at 0 3t dropped lose 3 116 ");
	is.reserve = 0;
	serve(1, 3);
	TOLD("take 11 show 1 at 0 3t dropped lose 3 116 ");
	is.at_end = true;
	serve(1, 0);
	TOLD("take 11 index end 80/7 deaf 11 close 11 grew 1 of -1 to 0 eof (EOF 1) ");
}

Test(move, without_descriptors_what_has_no_name_is_counted)
{
	m.files = 2;
	is.sys_open = ESTALE;
	serve(0, 4);
	TOLD("open 80/6 GONE 0 116 take 10 show 0 at 0 4t dropped lose 4 116 ");
	cr_expect(streams[0].discarded);
	is.sys_open = EACCES;
	serve(1, 4);
	TOLD("open 80/7 watch 11 as 1 edges peek 11 show 1 at 0 4p FULL 1 13 ");
	cr_expect_not(streams[1].discarded);
	cr_expect(streams[1].stalled);
	cr_expect_eq(streams[1].sys, EACCES);
}

/* --- terminals --------------------------------------------------------------------- */

Test(move, a_terminal_is_moved_until_it_is_empty)
{
	terminal();
	is.terminal = 9;
	is.fill_most = 4;
	serve(0, 0);
	TOLD("fill open 80/6 piece 0 of 50 move 10>50 spend 4 at 5 index 80/6 to 4 at 5 grew 0 of 50 to 4 ");
	cr_expect_eq(slot->moved, 4);
	serve(0, 0);
	TOLD("fill piece 0 of 50 move 10>50 spend 4 at 5 index 80/6 to 8 at 5 grew 0 of 50 to 8 ");
	slot->fill = 0;
	serve(0, 0);
	TOLD("fill piece 0 of 50 move 10>50 spend 1 at 5 index 80/6 to 9 at 5 grew 0 of 50 to 9 ");
	is.at_end = true;
	is.terminal = 2;
	serve(0, 0);
	TOLD("fill piece 0 of 50 move 10>50 spend 2 at 5 index 80/6 to 11 at 5 grew 0 of 50 to 11 index end 80/6 deaf 20 close 10 grew 0 of 50 to 11 eof (EOF 0) ");
	cr_expect_eq(slot->pipe, -1);
}

Test(move, a_terminal_without_room_waits)
{
	terminal();
	slot->file = 30;
	is.terminal = 9;
	is.fill_most = 4;
	is.sys_move = ENOSPC;
	serve(0, 0);
	TOLD("fill piece 0 of 30 move 10>30 watch 20 as 0 edges peek 10 show 0 at 0 4p FULL 0 28 ");
	serve(0, 4);
	TOLD("fill peek 10 show 0 at 0 8p ");
	is.sys_move = 0;
	move_retry(&m);
	TOLD("fill piece 0 of 30 move 10>30 spend 9 at 5 index 80/6 to 9 at 5 grew 0 of 30 to 9 ROOM 0 0 watch 20 as 0 ");
	slot->tty = 0;
	is.terminal = 1;
	serve(0, 0);
	TOLD("fill piece 0 of 30 move 10>30 spend 1 at 5 index 80/6 to 10 at 5 grew 0 of 30 to 10 ");
}

/* --- given up ----------------------------------------------------------------------- */

Test(move, what_the_pipe_holds_is_moved_and_no_more)
{
	is.writer = true;
	is.waiting = 5;
	is.chunk = 3;
	move_drop(&m, 0);
	TOLD("writer 10? OPEN 0 0 fill open 80/6 piece 0 of 50 move 10>50 spend 3 at 5 index 80/6 to 3 at 5 grew 0 of 50 to 3 piece 0 of 50 move 10>50 spend 2 at 5 index 80/6 to 5 at 5 grew 0 of 50 to 5 index end 80/6 deaf 10 close 10 grew 0 of 50 to 5 eof (EOF 0) ");
	cr_expect(streams[0].dropped);
	cr_expect_eq(slot->moved, 5);
	cr_expect_eq(slot->pipe, -1);
	move_drop(&m, 0);
	TOLD("");
	is.writer = false;
	is.waiting = 0;
	share->slot[1].pipe = 0;
	move_drop(&m, 1);
	TOLD("writer 0? fill index end 80/7 deaf 0 close 0 grew 1 of -1 to 0 eof (EOF 1) ");
}

Test(move, who_is_given_up_without_room_waits_and_is_given_up_again)
{
	slot->file = 30;
	is.sys_move = ENOSPC;
	is.waiting = 5;
	move_drop(&m, 0);
	TOLD("writer 10? fill piece 0 of 30 move 10>30 watch 10 as 0 edges peek 10 show 0 at 0 5p FULL 0 28 ");
	cr_expect(streams[0].stalled);
	move_retry(&m);
	TOLD("fill piece 0 of 30 move 10>30 peek 10 show 0 at 0 5p ");
	move_drop(&m, 0);
	TOLD("left of 10? lose 5 28 ROOM 0 0 watch 10 as 0 index end 80/6 deaf 10 close 10 grew 0 of 30 to 0 eof (EOF 0) ");
	cr_expect_eq(m.stalled, 0);
	cr_expect_eq(slot->pipe, -1);
	is.sys_move = EFBIG;
	move_drop(&m, 1);
	TOLD("writer 11? fill open 80/7 piece 1 of 50 move 11>50 take 11 show 1 at 0 5t dropped fill lose 5 27 FULL 1 27 ROOM 1 0 index end 80/7 deaf 11 close 11 grew 1 of 50 to 0 eof (EOF 1) ");
	is.sys_move = EINTR;
	is.waiting = 1;
	move_drop(&m, 2);
	TOLD("writer 12? fill open 80/8 piece 2 of 50 move 12>50 index end 80/8 deaf 12 close 12 grew 2 of 50 to 0 eof (EOF 2) ");
	is.sys_move = 0;
	is.waiting = 5;
	streams[3].stalled = streams[3].told = streams[3].dropped = true;
	m.stalled = 1;
	move_retry(&m);
	TOLD("fill open 80/9 piece 3 of 50 move 13>50 shut 50 spend 5 at 5 index 80/9 to 5 at 5 grew 3 of -1 to 5 ROOM 3 0 watch 13 as 3 index end 80/9 deaf 13 close 13 grew 3 of -1 to 5 eof (EOF 3) ");
	cr_expect_eq(m.stalled, 0);
}

Test(move, of_a_terminal_that_is_given_up_no_more_than_it_may_hold)
{
	quiet = true;
	terminal();
	slot->file = 30;
	is.terminal = 1 << 20;
	is.fill_most = 1000;
	move_drop(&m, 0);
	cr_expect_eq(slot->moved, 132000);
	cr_expect_eq(slot->pipe, -1);
	quiet = false;
	begin();
	terminal();
	slot->tty = 0;
	slot->file = 30;
	is.terminal = 9;
	is.fill_most = 4;
	move_drop(&m, 0);
	TOLD("writer 0? fill piece 0 of 30 move 10>30 spend 4 at 5 index 80/6 to 4 at 5 grew 0 of 30 to 4 fill piece 0 of 30 move 10>30 spend 4 at 5 index 80/6 to 8 at 5 grew 0 of 30 to 8 fill piece 0 of 30 move 10>30 spend 1 at 5 index 80/6 to 9 at 5 grew 0 of 30 to 9 fill index end 80/6 deaf 0 close 10 grew 0 of 30 to 9 eof (EOF 0) ");
}
