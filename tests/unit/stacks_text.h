/* SPDX-License-Identifier: Apache-2.0 */
/* stacks_text.h - what tools print, as they did, for tests of launcher/stacks. */
#ifndef TESTS_UNIT_STACKS_TEXT_H
#define TESTS_UNIT_STACKS_TEXT_H

/* eu-stack 0.188, -m */
#define EU_TEXT \
	"PID 8931 - process\n" \
	"TID 8931:\n" \
	"#0  0x00007fdee652012b __GI___lll_lock_wait - /usr/lib/libc.so.6\n" \
	"#1  0x00007fdee6526482 __pthread_mutex_lock@GLIBC_2.2.5 - /usr/lib/libc.so.6\n" \
	"#2  0x00005581b266217f std::vector<int, a b>::wait(int) - /tmp/block\n" \
	"#3  0x00005581b2662189 - /tmp/block\n" \
	"#4  0x00005581b26621b4\n" \
	"eu-stack: dwfl_thread_getframes tid 8931 at 0x1 in block: no\n" \
	"TID 8933:\n" \
	"#0  0x00007fdee656ddf2 - 1 pause - [vdso: 8931]\n" \
	"#1  0x00007fdee65a38ec __clone3\n"

/* gdb 13.1, thread apply all bt, and py-bt */
#define GDB_TEXT \
	"[New LWP 18075]\n" \
	"warning: #0 is no frame\n" \
	"\n" \
	"Thread 2 (Thread 0x7f3ac009d6c0 (LWP 18075) \"block\"):\n" \
	"#0  0x00007f3ac0174df2 in __libc_pause () at ../linux/pause.c:29\n" \
	"#1  0x000055f515cc2162 in beside (a=0x0) at block.c:8\n" \
	"#2  <signal handler called>\n" \
	"\n" \
	"Thread 1 (Thread 0x7f3ac009e740 (LWP 18067) \"bl (LWP 3) ock\"):\n" \
	"#0  futex_wait (word=0x5 <m>, s=0x7 \") at x.c:9\") at ../nptl/futex.h:146\n" \
	"#1  0x0000000000550c6e in ?? () from /usr/lib/libfoo.so\n" \
	"#2  0x000055f515cc21b4 in a::b<int>(int) (x=...) at block.c:9\n" \
	"[Inferior 1 (process 18067) detached]\n" \
	"\n" \
	"Thread 1 (Thread 0x7fbd820282c0 (LWP 18067) \"python3\"):\n" \
	"Traceback (most recent call first):\n" \
	"  <built-in method acquire of _thread.lock object>\n" \
	"  File \"/x/slow.py\", line 4, in wait_in_python\n" \
	"    lock.acquire()\n" \
	"  File \"/x/slow.py\", line 7, in <module>\n" \
	"    train()\n"

/* py-spy 0.4 */
#define PY_SPY_TEXT \
	"Process 18463: python3 slow.py\n" \
	"Python v3.11.2 (/usr/bin/python3.11)\n" \
	"\n" \
	"Thread 18463 (idle): \"MainThread\"\n" \
	"    wait_in_python (slow.py:4)\n" \
	"    <module> (a b/c:d/slow.py:7)\n" \
	"Thread 18464 (active): \"Thread-1\"\n" \
	"    run (threading.py:975)\n"

/* faulthandler of Python 3.11 */
#define FAULTHANDLER_TEXT \
	"Stack (most recent call first):\n" \
	"  File \"/x/slow.py\", line 4 in wait_in_python\n" \
	"  File \"/x/a\", line 1 in b.py\", line 7 in <module>\n" \
	"  ...\n"

#endif /* TESTS_UNIT_STACKS_TEXT_H */
