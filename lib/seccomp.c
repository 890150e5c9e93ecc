/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From a table to a BPF program. */
#include "lib/seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/vec.h"

#ifdef SECCOMP_ARCHITECTURE
#define OUR_ARCHITECTURE SECCOMP_ARCHITECTURE
#else
#define OUR_ARCHITECTURE 0
#endif

#define NEWEST_KNOWN_CALL 462 /* of Linux 6.10 */
#define FAILED 0xff           /* as a jump: to where the next rule begins */

typedef VEC(struct sock_filter) filter_program;

static void add(filter_program *program, uint16_t code, uint8_t if_true, uint8_t if_false, uint32_t value)
{
	const struct sock_filter step = { code, if_true, if_false, value };

	vec_push(program, step);
}

static void load(filter_program *program, size_t offset)
{
	add(program, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

static void answer(filter_program *program, uint32_t action)
{
	add(program, BPF_RET | BPF_K, 0, 0, action);
}

/* The steps that check an argument; one that is to fail jumps to FAILED. */
static void add_check(filter_program *check, const struct call_rule *rule)
{
	const uint16_t equal = BPF_JMP | BPF_JEQ | BPF_K;
	/* Both architectures have their lower half first. */
	const size_t argument = offsetof(struct seccomp_data, args) + sizeof(uint64_t) * rule->argument;

	load(check, argument);
	switch (rule->check) {
	case CALL_IF_SET:
		add(check, BPF_ALU | BPF_AND | BPF_K, 0, 0, rule->value);
		add(check, equal, 0, FAILED, rule->value);
		break;
	case CALL_IF_CLEAR:
		add(check, BPF_JMP | BPF_JSET | BPF_K, FAILED, 0, rule->value);
		break;
	case CALL_IF_NULL:
	case CALL_IF_ZEROS:
		add(check, equal, 0, FAILED, 0);
		load(check, argument + (rule->check == CALL_IF_NULL ? sizeof(uint32_t) : sizeof(uint64_t)));
		add(check, equal, 0, FAILED, 0);
		break;
	default:
		add(check, equal, 0, FAILED, rule->value);
	}
}

/* The number is loaded before each rule and after it. */
static void add_rule(filter_program *program, const struct call_rule *rule)
{
	if (rule->check != CALL_ALWAYS && rule->check != CALL_UNKNOWN) {
		filter_program check = VEC_INIT;

		add_check(&check, rule);
		add(program, BPF_JMP | BPF_JEQ | BPF_K, 0, (uint8_t)(check.count + 2), (uint32_t)rule->number);
		for (size_t i = 0; i < check.count; i++) {
			struct sock_filter step = check.items[i];
			const uint8_t to_the_end = (uint8_t)(check.count - i);

			if (BPF_CLASS(step.code) == BPF_JMP) {
				step.jt = step.jt == FAILED ? to_the_end : step.jt;
				step.jf = step.jf == FAILED ? to_the_end : step.jf;
			}
			vec_push(program, step);
		}
		answer(program, SECCOMP_RET_ALLOW);
		load(program, offsetof(struct seccomp_data, nr));
		vec_free(&check);
		return;
	}
	add(program, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (uint32_t)rule->number);
	answer(program, rule->check == CALL_ALWAYS ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | ENOSYS);
}

bool seccomp_is_available(void)
{
	const uint32_t action = SECCOMP_RET_KILL_PROCESS;

	return OUR_ARCHITECTURE != 0 && syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

int seccomp_allow_only(const struct call_table *tables, size_t count)
{
	filter_program program = VEC_INIT;

	load(&program, offsetof(struct seccomp_data, arch));
	add(&program, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, OUR_ARCHITECTURE);
	answer(&program, SECCOMP_RET_KILL_PROCESS);
	load(&program, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < tables[i].count; j++)
			add_rule(&program, &tables[i].rules[j]);
	add(&program, BPF_JMP | BPF_JGT | BPF_K, 0, 1, NEWEST_KNOWN_CALL);
	answer(&program, SECCOMP_RET_ERRNO | ENOSYS);
	answer(&program, SECCOMP_RET_ERRNO | EPERM);
	struct sock_fprog installed = { (unsigned short)program.count, program.items };
	int result = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &installed), error = errno;

	vec_free(&program);
	errno = error;
	return result;
}
