/* The forms of requests and replies with 0 to 16 arguments, for am.h and am1996.h, which say
 * before:
 *
 *   HAMLYN_AM_EP_      the type of endpoints
 *   HAMLYN_AM_PLACE_   the type of offsets
 *   HAMLYN_AM_BYTES_   the type of lengths
 *   HAMLYN_AM_CODE_(c) the code of this header for a code of the library
 *
 * They are functions, so their addresses can be taken. */

#define HAMLYN_AM_P0_
#define HAMLYN_AM_P1_ , int a0
#define HAMLYN_AM_P2_ HAMLYN_AM_P1_, int a1
#define HAMLYN_AM_P3_ HAMLYN_AM_P2_, int a2
#define HAMLYN_AM_P4_ HAMLYN_AM_P3_, int a3
#define HAMLYN_AM_P5_ HAMLYN_AM_P4_, int a4
#define HAMLYN_AM_P6_ HAMLYN_AM_P5_, int a5
#define HAMLYN_AM_P7_ HAMLYN_AM_P6_, int a6
#define HAMLYN_AM_P8_ HAMLYN_AM_P7_, int a7
#define HAMLYN_AM_P9_ HAMLYN_AM_P8_, int a8
#define HAMLYN_AM_P10_ HAMLYN_AM_P9_, int a9
#define HAMLYN_AM_P11_ HAMLYN_AM_P10_, int a10
#define HAMLYN_AM_P12_ HAMLYN_AM_P11_, int a11
#define HAMLYN_AM_P13_ HAMLYN_AM_P12_, int a12
#define HAMLYN_AM_P14_ HAMLYN_AM_P13_, int a13
#define HAMLYN_AM_P15_ HAMLYN_AM_P14_, int a14
#define HAMLYN_AM_P16_ HAMLYN_AM_P15_, int a15

/* An array is never empty. */
#define HAMLYN_AM_V0_ 0
#define HAMLYN_AM_V1_ (uint32_t)a0
#define HAMLYN_AM_V2_ HAMLYN_AM_V1_, (uint32_t)a1
#define HAMLYN_AM_V3_ HAMLYN_AM_V2_, (uint32_t)a2
#define HAMLYN_AM_V4_ HAMLYN_AM_V3_, (uint32_t)a3
#define HAMLYN_AM_V5_ HAMLYN_AM_V4_, (uint32_t)a4
#define HAMLYN_AM_V6_ HAMLYN_AM_V5_, (uint32_t)a5
#define HAMLYN_AM_V7_ HAMLYN_AM_V6_, (uint32_t)a6
#define HAMLYN_AM_V8_ HAMLYN_AM_V7_, (uint32_t)a7
#define HAMLYN_AM_V9_ HAMLYN_AM_V8_, (uint32_t)a8
#define HAMLYN_AM_V10_ HAMLYN_AM_V9_, (uint32_t)a9
#define HAMLYN_AM_V11_ HAMLYN_AM_V10_, (uint32_t)a10
#define HAMLYN_AM_V12_ HAMLYN_AM_V11_, (uint32_t)a11
#define HAMLYN_AM_V13_ HAMLYN_AM_V12_, (uint32_t)a12
#define HAMLYN_AM_V14_ HAMLYN_AM_V13_, (uint32_t)a13
#define HAMLYN_AM_V15_ HAMLYN_AM_V14_, (uint32_t)a14
#define HAMLYN_AM_V16_ HAMLYN_AM_V15_, (uint32_t)a15

/* All forms with M arguments. */
#define HAMLYN_AM_FORMS_(M)                                                                                                  \
    static inline int AM_Request##M(HAMLYN_AM_EP_ ep, int dest, uint8_t handler HAMLYN_AM_P##M##_) {                         \
        const uint32_t args[] = {HAMLYN_AM_V##M##_};                                                                         \
        return HAMLYN_AM_CODE_(hamlyn_am_request(ep, dest, handler, 0, M, args));                                            \
    }                                                                                                                        \
    static inline int AMX_TryRequest##M(HAMLYN_AM_EP_ ep, int dest, uint8_t handler HAMLYN_AM_P##M##_) {                     \
        const uint32_t args[] = {HAMLYN_AM_V##M##_};                                                                         \
        return HAMLYN_AM_CODE_(hamlyn_am_request(ep, dest, handler, 1, M, args));                                            \
    }                                                                                                                        \
    static inline int AM_RequestI##M(HAMLYN_AM_EP_ ep, int dest, uint8_t handler, const void *source, HAMLYN_AM_BYTES_ nbytes      \
                                         HAMLYN_AM_P##M##_) {                                                                \
        const uint32_t args[] = {HAMLYN_AM_V##M##_};                                                                         \
        return HAMLYN_AM_CODE_(hamlyn_am_request_i(ep, dest, handler, source, (size_t)nbytes, 0, M, args));                  \
    }                                                                                                                        \
    static inline int AMX_TryRequestI##M(HAMLYN_AM_EP_ ep, int dest, uint8_t handler, const void *source, HAMLYN_AM_BYTES_ nbytes  \
                                             HAMLYN_AM_P##M##_) {                                                            \
        const uint32_t args[] = {HAMLYN_AM_V##M##_};                                                                         \
        return HAMLYN_AM_CODE_(hamlyn_am_request_i(ep, dest, handler, source, (size_t)nbytes, 1, M, args));                  \
    }                                                                                                                        \
    static inline int AM_RequestXfer##M(HAMLYN_AM_EP_ ep, int dest, HAMLYN_AM_PLACE_ dest_offset, uint8_t handler,           \
                                        const void *source, HAMLYN_AM_BYTES_ nbytes HAMLYN_AM_P##M##_) {                           \
        const uint32_t args[] = {HAMLYN_AM_V##M##_};                                                                         \
        return HAMLYN_AM_CODE_(                                                                                              \
            hamlyn_am_request_xfer(ep, dest, (size_t)dest_offset, handler, source, (size_t)nbytes, 0, M, args));             \
    }                                                                                                                        \
    static inline int AM_RequestXferAsync##M(HAMLYN_AM_EP_ ep, int dest, HAMLYN_AM_PLACE_ dest_offset, uint8_t handler,      \
                                             const void *source, HAMLYN_AM_BYTES_ nbytes HAMLYN_AM_P##M##_) {                      \
        const uint32_t args[] = {HAMLYN_AM_V##M##_};                                                                         \
        return HAMLYN_AM_CODE_(                                                                                              \
            hamlyn_am_request_xfer(ep, dest, (size_t)dest_offset, handler, source, (size_t)nbytes, 1, M, args));             \
    }                                                                                                                        \
    static inline int AM_GetXfer##M(HAMLYN_AM_EP_ ep, int dest, HAMLYN_AM_PLACE_ source_offset, uint8_t handler,             \
                                    HAMLYN_AM_PLACE_ dest_offset, HAMLYN_AM_BYTES_ nbytes HAMLYN_AM_P##M##_) {               \
        const uint32_t args[] = {HAMLYN_AM_V##M##_};                                                                         \
        return HAMLYN_AM_CODE_(hamlyn_am_get_xfer(ep, dest, (size_t)source_offset, handler, (size_t)dest_offset,             \
                                                  (size_t)nbytes, 0, M, args));                                              \
    }                                                                                                                        \
    static inline int AM_GetXferAsync##M(HAMLYN_AM_EP_ ep, int dest, HAMLYN_AM_PLACE_ source_offset, uint8_t handler,        \
                                         HAMLYN_AM_PLACE_ dest_offset, HAMLYN_AM_BYTES_ nbytes HAMLYN_AM_P##M##_) {          \
        const uint32_t args[] = {HAMLYN_AM_V##M##_};                                                                         \
        return HAMLYN_AM_CODE_(hamlyn_am_get_xfer(ep, dest, (size_t)source_offset, handler, (size_t)dest_offset,             \
                                                  (size_t)nbytes, 1, M, args));                                              \
    }                                                                                                                        \
    static inline int AM_Reply##M(void *token, uint8_t handler HAMLYN_AM_P##M##_) {                                          \
        const uint32_t args[] = {HAMLYN_AM_V##M##_};                                                                         \
        return HAMLYN_AM_CODE_(hamlyn_am_reply(token, handler, M, args));                                                    \
    }                                                                                                                        \
    static inline int AM_ReplyI##M(void *token, uint8_t handler, const void *source, HAMLYN_AM_BYTES_ nbytes HAMLYN_AM_P##M##_) {  \
        const uint32_t args[] = {HAMLYN_AM_V##M##_};                                                                         \
        return HAMLYN_AM_CODE_(hamlyn_am_reply_i(token, handler, source, (size_t)nbytes, M, args));                          \
    }                                                                                                                        \
    static inline int AM_ReplyXfer##M(void *token, HAMLYN_AM_PLACE_ dest_offset, uint8_t handler, void *source,              \
                                      HAMLYN_AM_BYTES_ nbytes HAMLYN_AM_P##M##_) {                                           \
        const uint32_t args[] = {HAMLYN_AM_V##M##_};                                                                         \
        return HAMLYN_AM_CODE_(hamlyn_am_reply_xfer(token, (size_t)dest_offset, handler, source, (size_t)nbytes, M, args));  \
    }

HAMLYN_AM_FORMS_(0)
HAMLYN_AM_FORMS_(1)
HAMLYN_AM_FORMS_(2)
HAMLYN_AM_FORMS_(3)
HAMLYN_AM_FORMS_(4)
HAMLYN_AM_FORMS_(5)
HAMLYN_AM_FORMS_(6)
HAMLYN_AM_FORMS_(7)
HAMLYN_AM_FORMS_(8)
HAMLYN_AM_FORMS_(9)
HAMLYN_AM_FORMS_(10)
HAMLYN_AM_FORMS_(11)
HAMLYN_AM_FORMS_(12)
HAMLYN_AM_FORMS_(13)
HAMLYN_AM_FORMS_(14)
HAMLYN_AM_FORMS_(15)
HAMLYN_AM_FORMS_(16)
