/* udm_inject0 to udm_inject14 and udm_injectc0 to udm_injectc14: a message of so many words, each
 * an argument. For udm.h, which includes it.
 *
 *   udm_inject2(udm, to, handler, w0, w1) */
#ifndef UDM_FORMS_H
#define UDM_FORMS_H

/* The parameters begin with a comma each, and so there may be none. */
#define UDM_FORM_(count, parameters, words)                                                       \
    static inline udm_status udm_inject##count(udm_t *udm, uint32_t to,                           \
                                               uint16_t handler UDM_LIST_ parameters) {           \
        const uint32_t all[] = {UDM_LIST_ words};                                                 \
        return udm_inject(udm, to, handler, count, all);                                          \
    }                                                                                             \
    static inline udm_status udm_injectc##count(udm_t *udm, uint32_t to,                          \
                                                uint16_t handler UDM_LIST_ parameters) {          \
        const uint32_t all[] = {UDM_LIST_ words};                                                 \
        return udm_injectc(udm, to, handler, count, all);                                         \
    }
#define UDM_LIST_(...) __VA_ARGS__

static inline udm_status udm_inject0(udm_t *udm, uint32_t to, uint16_t handler) {
    return udm_inject(udm, to, handler, 0, NULL);
}
static inline udm_status udm_injectc0(udm_t *udm, uint32_t to, uint16_t handler) {
    return udm_injectc(udm, to, handler, 0, NULL);
}
UDM_FORM_(1, (, uint32_t w0), (w0))
UDM_FORM_(2, (, uint32_t w0, uint32_t w1), (w0, w1))
UDM_FORM_(3, (, uint32_t w0, uint32_t w1, uint32_t w2), (w0, w1, w2))
UDM_FORM_(4, (, uint32_t w0, uint32_t w1, uint32_t w2, uint32_t w3), (w0, w1, w2, w3))
UDM_FORM_(5, (, uint32_t w0, uint32_t w1, uint32_t w2, uint32_t w3, uint32_t w4), (w0, w1, w2, w3,
          w4))
UDM_FORM_(6, (, uint32_t w0, uint32_t w1, uint32_t w2, uint32_t w3, uint32_t w4, uint32_t w5),
          (w0, w1, w2, w3, w4, w5))
UDM_FORM_(7, (, uint32_t w0, uint32_t w1, uint32_t w2, uint32_t w3, uint32_t w4, uint32_t w5,
          uint32_t w6), (w0, w1, w2, w3, w4, w5, w6))
UDM_FORM_(8, (, uint32_t w0, uint32_t w1, uint32_t w2, uint32_t w3, uint32_t w4, uint32_t w5,
          uint32_t w6, uint32_t w7), (w0, w1, w2, w3, w4, w5, w6, w7))
UDM_FORM_(9, (, uint32_t w0, uint32_t w1, uint32_t w2, uint32_t w3, uint32_t w4, uint32_t w5,
          uint32_t w6, uint32_t w7, uint32_t w8), (w0, w1, w2, w3, w4, w5, w6, w7, w8))
UDM_FORM_(10, (, uint32_t w0, uint32_t w1, uint32_t w2, uint32_t w3, uint32_t w4, uint32_t w5,
          uint32_t w6, uint32_t w7, uint32_t w8, uint32_t w9), (w0, w1, w2, w3, w4, w5, w6, w7,
          w8, w9))
UDM_FORM_(11, (, uint32_t w0, uint32_t w1, uint32_t w2, uint32_t w3, uint32_t w4, uint32_t w5,
          uint32_t w6, uint32_t w7, uint32_t w8, uint32_t w9, uint32_t w10), (w0, w1, w2, w3, w4,
          w5, w6, w7, w8, w9, w10))
UDM_FORM_(12, (, uint32_t w0, uint32_t w1, uint32_t w2, uint32_t w3, uint32_t w4, uint32_t w5,
          uint32_t w6, uint32_t w7, uint32_t w8, uint32_t w9, uint32_t w10, uint32_t w11), (w0,
          w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11))
UDM_FORM_(13, (, uint32_t w0, uint32_t w1, uint32_t w2, uint32_t w3, uint32_t w4, uint32_t w5,
          uint32_t w6, uint32_t w7, uint32_t w8, uint32_t w9, uint32_t w10, uint32_t w11, uint32_t
          w12), (w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w12))
UDM_FORM_(14, (, uint32_t w0, uint32_t w1, uint32_t w2, uint32_t w3, uint32_t w4, uint32_t w5,
          uint32_t w6, uint32_t w7, uint32_t w8, uint32_t w9, uint32_t w10, uint32_t w11, uint32_t
          w12, uint32_t w13), (w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w12, w13))

#undef UDM_FORM_
#undef UDM_LIST_

#endif
