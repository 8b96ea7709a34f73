/* A stream of records: lines of standard input at one end, standard output at the other, read where they landed.
 *
 *     log collect > all.log
 *     journalctl | log send
 */
#include <hamlyn.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

static const int64_t WAIT_NS = 10000000000;

static int fail(const hamlyn_error *error) {
    fprintf(stderr, "%s\n", error->text);
    return 1;
}

static int collect(void) {
    hamlyn_error error;
    hamlyn_manager *collector;
    hamlyn_stream_receiver *lines;
    hamlyn_message line;
    hamlyn_status status;
    if (hamlyn_open("collector", &collector, &error) || hamlyn_bind_stream(collector, "log", NULL, &lines, &error)) {
        return fail(&error);
    }
    while ((status = hamlyn_recv_record(lines, HAMLYN_FOREVER, &line, &error)) == HAMLYN_OK) {
        fwrite(line.data, 1, line.length_bytes, stdout);
        putchar('\n');
        /* Its memory goes back to the sender. */
        hamlyn_release_record(lines, NULL);
    }
    /* A sender that died in the middle is another case: HAMLYN_PEER_LOST. */
    if (status != HAMLYN_FINISHED) {
        return fail(&error);
    }
    /* Also of a line before the last. */
    if (ferror(stdout) || fflush(stdout) != 0) {
        perror("standard output");
        return 1;
    }
    hamlyn_close_stream_receiver(lines, NULL);
    hamlyn_close(collector, NULL);
    return 0;
}

static int send_lines(void) {
    hamlyn_error error;
    hamlyn_manager *me;
    hamlyn_stream_sender *log;
    if (hamlyn_open(NULL, &me, &error) || hamlyn_connect_stream(me, "collector/log", WAIT_NS, &log, &error)) {
        return fail(&error);
    }
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    while ((length = getline(&line, &room, stdin)) >= 0) {
        if (length > 0 && line[length - 1] == '\n') {
            length--;
        }
        if (hamlyn_send_record(log, line, (size_t)length, HAMLYN_FOREVER, &error)) {
            return fail(&error);
        }
    }
    /* What could not be read is not the end. To close the stream would tell the collector that it is, so it dies with this program. */
    if (!feof(stdin)) {
        perror("standard input");
        return 1;
    }
    free(line);
    if (hamlyn_finish_stream(log, HAMLYN_FOREVER, &error)) {
        return fail(&error);
    }
    hamlyn_close_stream_sender(log, NULL);
    hamlyn_close(me, NULL);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "collect") == 0) {
        return collect();
    }
    if (argc == 2 && strcmp(argv[1], "send") == 0) {
        return send_lines();
    }
    fprintf(stderr, "usage: log collect | log send\n");
    return 2;
}
