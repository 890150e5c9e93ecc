/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The runs that write a destination, by where their contents come from. */
#include "contents/contents.h"

#include "contents/copy.h"
#include "contents/pull.h"
#include "lib/exit.h"
#include "receiver/run.h"

int receiver_main(struct options *options)
{
	size_t operands = options->operands.count;
	bool lists = options->list_only || operands == 1;

	if (options->attr_snapshot && options->only_send_attrs)
		die(EXIT_SYNTAX, "rsync: --only-send-attrs with a destination writes an attr tree: --attr-snapshot is for runs "
		    "without a destination then");
	return run_local(options, NULL, NULL, contents_of_files, lists ? NULL : options->operands.items[operands - 1], NULL);
}

int receiver_count_main(struct options *options, struct run_stats *stats)
{
	return run_local(options, NULL, NULL, contents_of_files, options->operands.items[options->operands.count - 1], stats);
}

int receiver_snapshot_main(struct options *options, const struct receiver_snapshot *from, const char *destination)
{
	return run_local(options, from, NULL, contents_of_files, destination, NULL);
}

int receiver_pull_main(struct options *options, const struct receiver_peer *peer, const char *destination)
{
	return run_local(options, NULL, peer, contents_of_peer, destination, peer->service ? peer->service->stats : NULL);
}
