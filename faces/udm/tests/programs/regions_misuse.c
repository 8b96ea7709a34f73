/* Each code of crl.h, by a program that causes exactly it. */
#define CHECK_TEXT crl_error_text
#include "crl.h"
#include "check.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int told, told_code;

static void on_error(int code, const char *text) {
    told++;
    told_code = code;
    TRUE(text && *text);
}

/* It makes calls, one of which fails and tells it once more. */
static void on_error_calls(int code, const char *text) {
    char before[1024];
    told++;
    snprintf(before, sizeof before, "%s", text);
    if (code == CRL_OPERATION_NOT_OPEN) {
        TRUE(rgn_map(77) == NULL);
        TRUE(crl_error_text() != text);
    } else {
        EQUAL(code, CRL_NO_REGION);
        TRUE(crl_self_addr == 0);
    }
    EQUAL(strcmp(text, before), 0);
}

static void all_give(int code) {
    char byte = 0;
    uint64_t count;
    EQUAL(rgn_barrier(), code);
    EQUAL(rgn_destroy(1), code);
    EQUAL(rgn_unmap(&byte), code);
    EQUAL(rgn_flush(&byte), code);
    EQUAL(rgn_start_read(&byte), code);
    EQUAL(rgn_end_read(&byte), code);
    EQUAL(rgn_start_write(&byte), code);
    EQUAL(rgn_end_write(&byte), code);
    EQUAL(rgn_bcast_send(1, &byte), code);
    EQUAL(rgn_bcast_recv(1, &byte), code);
    EQUAL(crl_serve(0), code);
    EQUAL(crl_finish(0), code);
    EQUAL(crl_leave(0), code);
    EQUAL(crl_messages_sent(&count), code);
    TRUE(rgn_create(1) == crl_no_rid);
    EQUAL(crl_last_status(), code);
    TRUE(rgn_map(1) == NULL);
    EQUAL(crl_last_status(), code);
    TRUE(rgn_rid(&byte) == crl_no_rid);
    EQUAL(crl_last_status(), code);
    EQUAL(rgn_size(&byte), 0);
    EQUAL(crl_last_status(), code);
    TRUE(rgn_reduce_dadd(1) != rgn_reduce_dadd(1));
    EQUAL(crl_last_status(), code);
    EQUAL(crl_num_nodes, 0);
    EQUAL(crl_self_addr, (unsigned)-1);
}

static void *elsewhere(void *argument) {
    (void)argument;
    all_give(CRL_WRONG_THREAD);
    EQUAL(crl_init(), CRL_WRONG_THREAD);
    return NULL;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "before")) {
        all_give(CRL_NOT_OPEN);
        GOOD(crl_init());
        GOOD(crl_finish(LONG));
        all_give(CRL_NOT_OPEN);
        /* It may start anew. */
        GOOD(crl_init());
        GOOD(rgn_barrier());
        GOOD(crl_finish(LONG));
    } else if (!strcmp(what, "arguments")) {
        crl_options options;
        char names[2][64];
        const char *addresses[2];
        rid_t region;
        static char long_one[CRL_REGION_BYTES_MAX + 1];
        char *data, other = 0;
        addresses[0] = names[0];
        addresses[1] = names[1];
        memset(&options, 0, sizeof options);
        options.group.me = 1;
        GIVES(crl_open(&options), CRL_BAD_ARGUMENT, "addresses");
        options.group.me = 0;
        options.group.name = "two";
        options.group.nodes = 2;
        options.group.addresses = addresses;
        options.open_ms = 50;
        snprintf(names[0], sizeof names[0], "crl-alone-%d", (int)getpid());
        snprintf(names[1], sizeof names[1], "crl-never-%d", (int)getpid());
        GIVES(crl_open(&options), CRL_UNREACHABLE, "node 1");
        GIVES(rgn_barrier(), CRL_NOT_OPEN, "crl_init");
        GOOD(crl_init());
        TRUE(rgn_create(CRL_REGION_BYTES_MAX + 1) == crl_no_rid);
        EQUAL(crl_last_status(), CRL_TOO_LONG);
        TRUE(strstr(crl_error_text(), "1048576 at most") != NULL);
        GIVES(rgn_bcast_send(-1, &other), CRL_BAD_ARGUMENT, "broadcast");
        GIVES(rgn_bcast_send(1, NULL), CRL_BAD_ARGUMENT, "null");
        GIVES(rgn_bcast_recv(1, NULL), CRL_BAD_ARGUMENT, "null");
        GIVES(rgn_bcast_send(CRL_REGION_BYTES_MAX + 1, long_one), CRL_TOO_LONG, "broadcast");
        GIVES(crl_messages_sent(NULL), CRL_BAD_ARGUMENT, "null");
        TRUE(rgn_map(77) == NULL);
        EQUAL(crl_last_status(), CRL_NO_REGION);
        GIVES(rgn_destroy(77), CRL_NO_REGION, "never created");
        GIVES(rgn_start_read(&other), CRL_NOT_MAPPED, "rgn_map");
        GIVES(rgn_start_write(NULL), CRL_NOT_MAPPED, "rgn_map");
        region = rgn_create(10);
        data = (char *)rgn_map(region);
        GIVES(rgn_flush(data + 1), CRL_NOT_MAPPED, "rgn_map");
        GIVES(rgn_destroy(region), CRL_MAPPED, "rgn_unmap");
        GIVES(rgn_end_read(data), CRL_OPERATION_NOT_OPEN, "begin it first");
        GIVES(rgn_end_write(data), CRL_OPERATION_NOT_OPEN, "begin it first");
        GOOD(rgn_start_read(data));
        GIVES(rgn_start_write(data), CRL_OPEN, "end it first");
        GIVES(rgn_end_write(data), CRL_OPERATION_NOT_OPEN, "begin it first");
        GIVES(rgn_flush(data), CRL_OPEN, "end it first");
        GIVES(rgn_unmap(data), CRL_OPEN, "end it first");
        GIVES(crl_finish(0), CRL_OPEN, "end it first");
        GOOD(rgn_end_read(data));
        GOOD(rgn_start_write(data));
        GIVES(rgn_start_read(data), CRL_OPEN, "end it first");
        GIVES(rgn_start_write(data), CRL_OPEN, "end it first");
        GOOD(rgn_end_write(data));
        /* The program's function hears of each error, and of nothing else. */
        crl_on_error(on_error);
        GOOD(rgn_barrier());
        EQUAL(told, 0);
        EQUAL(rgn_end_write(data), CRL_OPERATION_NOT_OPEN);
        EQUAL(told, 1);
        EQUAL(told_code, CRL_OPERATION_NOT_OPEN);
        TRUE(rgn_map(77) == NULL);
        EQUAL(told, 2);
        EQUAL(told_code, CRL_NO_REGION);
        told = 0;
        crl_on_error(on_error_calls);
        EQUAL(rgn_end_write(data), CRL_OPERATION_NOT_OPEN);
        EQUAL(told, 2);
        EQUAL(crl_last_status(), CRL_OPERATION_NOT_OPEN);
        TRUE(strstr(crl_error_text(), "77") == NULL);
        TRUE(rgn_map(77) == NULL);
        EQUAL(crl_last_status(), CRL_NO_REGION);
        EQUAL(told, 3);
        crl_on_error(NULL);
        EQUAL(rgn_end_write(data), CRL_OPERATION_NOT_OPEN);
        EQUAL(told, 3);
        GOOD(rgn_unmap(data));
        GOOD(rgn_destroy(region));
        TRUE(rgn_map(region) == NULL);
        EQUAL(crl_last_status(), CRL_NO_REGION);
        GOOD(crl_finish(LONG));
    } else if (!strcmp(what, "thread")) {
        pthread_t thread;
        GOOD(crl_init());
        EQUAL(pthread_create(&thread, NULL, elsewhere, NULL), 0);
        EQUAL(pthread_join(thread, NULL), 0);
        GOOD(crl_finish(LONG));
    } else if (!strcmp(what, "fork")) {
        int status;
        pid_t child;
        GOOD(crl_init());
        child = fork();
        if (child == 0) {
            const char *own = "crl-of-a-child";
            crl_options options;
            char name[64];
            all_give(CRL_FORKED);
            memset(&options, 0, sizeof options);
            snprintf(name, sizeof name, "%s-%d", own, (int)getpid());
            own = name;
            options.group.name = "child";
            options.group.nodes = 1;
            options.group.addresses = &own;
            GOOD(crl_open(&options));
            GOOD(rgn_barrier());
            GOOD(crl_finish(LONG));
            return 0;
        }
        EQUAL(waitpid(child, &status, 0), child);
        EQUAL(status, 0);
        GOOD(rgn_barrier());
        GOOD(crl_finish(LONG));
    } else if (!strcmp(what, "upcalls")) {
        udm_t *udm;
        udm_options options;
        memset(&options, 0, sizeof options);
        options.interrupts = UDM_THREAD;
        GOOD(udm_open(&udm, &options));
        GIVES(crl_init(), CRL_IN_USE, "upcalls");
        GOOD(udm_close(udm));
        GOOD(crl_init());
        /* The other way round. */
        EQUAL(udm_open(&udm, &options), UDM_IN_USE);
        GOOD(crl_finish(LONG));
    } else if (!strcmp(what, "memory")) {
        struct rlimit limit;
        unsigned made = 0;
        GOOD(crl_init());
        EQUAL(getrlimit(RLIMIT_AS, &limit), 0);
        limit.rlim_cur = 0;
        EQUAL(setrlimit(RLIMIT_AS, &limit), 0);
        /* The allocator may have some of it. */
        while (rgn_create(CRL_REGION_BYTES_MAX) != crl_no_rid) TRUE(++made < 1000);
        EQUAL(crl_last_status(), CRL_MEMORY);
        TRUE(strstr(crl_error_text(), "no memory for a region of 1048576 bytes") != NULL);
        limit.rlim_cur = limit.rlim_max;
        EQUAL(setrlimit(RLIMIT_AS, &limit), 0);
        TRUE(rgn_create(CRL_REGION_BYTES_MAX) != crl_no_rid);
        GOOD(crl_finish(LONG));
    } else if (!strcmp(what, "exit")) {
        crl_on_error(crl_print_and_exit);
        rgn_barrier();
        printf("not here\n");
        return 0;
    } else {
        return 2;
    }
    printf("%s passed\n", what);
    return 0;
}
