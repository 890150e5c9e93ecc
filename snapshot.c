/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which command on snapshots it is. */
#include "snapshot.h"

#include "options.h"
#include "snapshot/convert.h"
#include "snapshot/diff.h"
#include "snapshot/list.h"
#include "snapshot/verify.h"

int snapshot_tool_main(struct options *options)
{
	static int (*const mains[])(struct options *) = {
		[ATTR_MODE_LIST] = snapshot_list_main, [ATTR_MODE_VERIFY] = snapshot_verify_main,
		[ATTR_MODE_DIFF] = snapshot_diff_main, [ATTR_MODE_FROM_TREE] = snapshot_from_tree_main,
		[ATTR_MODE_TO_TREE] = snapshot_to_tree_main,
	};

	return mains[options->attr_mode](options);
}
