/* A program of one node, as users write it: no header of the tests. */
#include <crl.h>
#include <udm.h>

static unsigned sum;

static void on_add(udm_t *udm, void *argument) {
    udm_message message;
    (void)argument;
    if (udm_extract(udm, &message) == UDM_OK) sum += udm_word(&message, 0);
}

int main(void) {
    udm_t *udm;
    unsigned *region;
    if (udm_open(&udm, NULL) || udm_on(udm, 0, on_add, NULL) || udm_inject1(udm, 0, 0, 42)) return 1;
    while (!sum)
        if (udm_wait(udm, 1000, NULL)) return 2;
    if (crl_init() || crl_num_nodes != 1 || crl_self_addr != 0) return 3;
    region = (unsigned *)rgn_map(rgn_create(sizeof *region));
    if (!region || rgn_start_write(region)) return 4;
    *region = sum;
    if (rgn_end_write(region) || crl_finish(1000) || udm_close(udm)) return 5;
    return sum != 42;
}
