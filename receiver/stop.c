/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The premature end of a run. */
#include "receiver/stop.h"

#include <time.h>

#include "dest/install.h"
#include "lib/exit.h"
#include "receiver/report.h"
#include "receiver/run.h"
#include "ui/progress.h"

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
