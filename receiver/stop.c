/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The premature end of a run. */
#include "receiver/stop.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "dest/write.h"
#include "fs/temp.h"
#include "lib/exit.h"
#include "receiver/report.h"
#include "receiver/run.h"
#include "ui/progress.h"

/* --- signals: a thread of their own receives them --- */

#define PATIENCE_MS 2000
#define PATIENCE_KEEPING_MS 10000 /* parts of files are still to be kept */
#define MOMENT_MS 20

/* Those that end a run. */
static void fill_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
	sigaddset(set, SIGUSR1);
}

/* The threads are interrupted nowhere; this one hears the signal and tells them. */
static void *await_signal(void *run_void)
{
	struct run *run = run_void;
	sigset_t set;
	int number;

	fill_signals(&set);
	sigwait(&set, &number);
	atomic_store(&run->receiver.dest.stop, number == SIGUSR1 ? STOP_SIGNAL1 : STOP_SIGNAL);
	/* The main thread ends the process within moments, unless it waits for something that does not come. */
	for (int waited = 0; !atomic_load(&run->is_over); waited += MOMENT_MS) {
		if (waited >= (atomic_load(&run->receiver.dest.keepable) > 0 ? PATIENCE_KEEPING_MS : PATIENCE_MS))
			break;
		nanosleep(&(struct timespec){ 0, MOMENT_MS * 1000000 }, NULL);
	}
	if (atomic_load(&run->is_over))
		return NULL;
	fs_temp_remove_all();
	_exit(number == SIGUSR1 ? EXIT_SIGNAL1 : EXIT_SIGNAL);
}

void run_handle_signals(struct run *run)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	signal(SIGVTALRM, SIG_IGN);
	fill_signals(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	run->has_signal_thread = pthread_create(&run->signal_thread, NULL, await_signal, run) == 0;
}

void run_stop_signals(struct run *run)
{
	if (!run->has_signal_thread)
		return;
	/* To cancel a thread takes a library that a module's root does not have. */
	atomic_store(&run->is_over, true);
	pthread_kill(run->signal_thread, SIGTERM); /* NOLINT(bugprone-bad-signal-to-kill-thread): it waits for that signal */
	pthread_join(run->signal_thread, NULL);
}

/* --- the main thread --- */

void receiver_stop_check(struct receiver *receiver)
{
	static const int codes[] = {
		[STOP_SIGNAL] = EXIT_SIGNAL, [STOP_SIGNAL1] = EXIT_SIGNAL1, [STOP_WRITE] = EXIT_FILEIO,
		[STOP_REFUSED] = EXIT_FILESELECT,
	};
	const struct timespec moment = { 0, 10000000 };
	int stop = atomic_load(&receiver->dest.stop);

	if (stop == STOP_NONE)
		return;
	report_drain(receiver->report);
	if (report_progress(receiver->report))
		progress_break_line(report_progress(receiver->report));
	/* The workers look at the flag now and then; they may have a file to keep. The signal thread makes sure this ends. */
	while (stop == STOP_SIGNAL && dest_keeps_partial(receiver->dest.options) && atomic_load(&receiver->dest.keepable) > 0)
		nanosleep(&moment, NULL);
	dest_close_gate(&receiver->dest);
	exit_with(codes[stop]);
}
