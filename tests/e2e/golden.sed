# SPDX-License-Identifier: Apache-2.0
# golden.sed - what differs from run to run becomes a word: job ids, process
# ids, times, versions. Everything else in a golden file is to the letter.
s/\r$//
# Job ids stand after the word job, in a path of logs, and after a verb.
s/\<job [a-z][a-z0-9]{3}\>/job JOB/g
s,\<xrun/[a-z][a-z0-9]{3}(/|$|[^A-Za-z0-9]),xrun/JOB\1,g
s/\<(xrun (logs|ps|wait|stop|stacks|attach|signal|restart)) [a-z][a-z0-9]{3}\>/\1 JOB/g
s/"job": ?"[a-z][a-z0-9]{3}"/"job":"JOB"/g
# Process ids.
s/\<pid [0-9]+/pid PID/g
s/"(pid|start)": ?[0-9]+/"\1":PID/g
# Stamps, then times.
s/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z?/STAMP/g
s/\<[0-9]+ (d|h|min) [0-9]+ (h|min|s)\>/TIME/g
s/\<[0-9]+(\.[0-9]+)? (ns|us|ms|s|min|h)\>/TIME/g
s/"(mono_ns|wall_ns|[a-z_]*_ns)": ?[0-9]+/"\1":TIME/g
# Versions and ports.
s/\<xrun [0-9]+\.[0-9]+\.[0-9]+[^ ]*/xrun VERSION/g
s/\<(127\.0\.0\.1|localhost|\[::1\]):[0-9]+/\1:PORT/g
# How many CPUs this machine has, where that is fewer than the ranks.
s/ on [0-9]+ CPUs? \(OMP_NUM_THREADS=[0-9]+\)//
# Whether other tests' ranks that call each other have the processors.
/^xrun: other jobs of xrun have all the processors: ranks are not bound$/d
