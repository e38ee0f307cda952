// SPDX-License-Identifier: GPL-2.0
/*
 * Steps with a deadline of 200 ms each; one of them takes too long:
 *
 *	make deadline
 *	perf record -M 64M -e cpu-clock -a --trigger socket -o blackbox &
 *	./deadline blackbox.sock 100 50
 *
 * usage: deadline SOCKET STEPS SLOW
 *   SLOW  the step that takes a second; 0: none
 */
#include "deadline.h"

#include <stdlib.h>

int main(int argc, char **argv)
{
	int fd, steps, slow;

	if (argc != 4) {
		fprintf(stderr, "usage: deadline SOCKET STEPS SLOW\n");
		return 2;
	}
	steps = atoi(argv[2]);
	slow = atoi(argv[3]);
	fd = flight_deadline_connect(argv[1]);
	if (fd < 0)
		fprintf(stderr, "%s: %s; no deadlines are watched\n", argv[1], strerror(-fd));

	for (int i = 1; i <= steps; i++) {
		char id[32];

		snprintf(id, sizeof(id), "step-%d", i);
		flight_deadline_arm(fd, id, 200, "of the example");
		usleep(i == slow ? 1000000 : 1000);
		flight_deadline_disarm(fd, id);
	}
	if (fd >= 0)
		close(fd);
	return 0;
}
