/* SPDX-License-Identifier: Apache-2.0 */
/*
 * late_git2.c - libgit2 in the name of the real one, for Criterion, which prints differences
 * of strings with it.
 *
 * Criterion executes each test in a process of its own, and each of them would load libgit2
 * with all libraries that it needs, and start it: more than half of the time of a short test.
 * Here the real one is loaded only when there is a difference to be printed. These are all
 * functions of it that Criterion calls.
 *
 * REAL_GIT2 is the path of the real one.
 */
#include <dlfcn.h>
#include <stddef.h>

#pragma GCC visibility push(default)
int git_libgit2_init(void);
int git_libgit2_shutdown(void);
int git_diff_buffers(const void *old_buf, size_t old_len, const char *old_path,
	const void *new_buf, size_t new_len, const char *new_path,
	const void *opts, void *on_file, void *on_binary, void *on_hunk,
	void *on_line, void *payload);
#pragma GCC visibility pop

int
git_libgit2_init(void)
{
	return 1;
}

int
git_libgit2_shutdown(void)
{
	return 0;
}

int
git_diff_buffers(const void *old_buf, size_t old_len, const char *old_path,
	const void *new_buf, size_t new_len, const char *new_path,
	const void *opts, void *on_file, void *on_binary, void *on_hunk,
	void *on_line, void *payload)
{
	void *real = dlopen(REAL_GIT2, RTLD_NOW | RTLD_LOCAL);
	typeof(git_libgit2_init) *init;
	typeof(git_diff_buffers) *diff;

	if (real == NULL)
		return -1;
	init = dlsym(real, "git_libgit2_init");
	diff = dlsym(real, "git_diff_buffers");
	if (init == NULL || diff == NULL || init() < 0)
		return -1;
	return diff(old_buf, old_len, old_path, new_buf, new_len, new_path,
		opts, on_file, on_binary, on_hunk, on_line, payload);
}
