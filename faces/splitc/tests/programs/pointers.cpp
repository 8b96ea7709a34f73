// splitc.hpp, checked on any number of processors.
#include <cstdio>

#include "splitc.hpp"

using splitc::global_ptr;
using splitc::spread_ptr;

#define CHECK(condition)                                                                                                          \
    do {                                                                                                                          \
        if (!(condition))                                                                                                         \
            splitc_fail(SPLITC_HERE, "check failed: %s", #condition);                                                             \
    } while (0)

struct point {
    double x, y;
    global_ptr<int> tag;
};

static point own_point;
static int own_tag;

static int program(int, char **)
{
    int next = (MYPROC + 1) % PROCS;
    own_tag = MYPROC * 2;
    own_point = {MYPROC + 0.5, -1.0, global_ptr<int>(MYPROC, &own_tag)};
    splitc::barrier();
    global_ptr<point> theirs(next, &own_point);
    point copy = *theirs;
    CHECK(copy.x == next + 0.5);
    CHECK(*copy.tag == next * 2);
    CHECK(copy.tag.proc() == next && copy.tag && copy.tag != nullptr);
    splitc::barrier();
    *copy.tag += 100;
    splitc::barrier();
    CHECK(own_tag == MYPROC * 2 + 100);

    spread_ptr<long> array = splitc::all_spread_malloc<long>(PROCS * 5);
    for (long i = MYPROC; i < PROCS * 5; i += PROCS) {
        CHECK((array + i).global().proc() == MYPROC);
        array[i] = i * i;
    }
    splitc::barrier();
    for (long i = 0; i < PROCS * 5; i++)
        CHECK(array[i] == i * i);
    CHECK((array + 7) - (array + 2) == 5);
    splitc::barrier();
    (array + next).global().put(-3);
    splitc::sync();
    splitc::barrier();
    CHECK(*(array + MYPROC).local() == -3);
    splitc::barrier();
    (array + next).global().store(-4);
    splitc::store_sync(sizeof(long));
    CHECK(*(array + MYPROC).local() == -4);
    splitc::all_store_sync();
    splitc::all_spread_free(array);
    std::printf("processor %d of %d passed\n", MYPROC, PROCS);
    return 0;
}

SPLITC_MAIN(program)
