/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/certificate.h"

#include "service_private.h"

/* Once of each certificate, whatever the clock does, and once that there is another one. */
void meta_service_certificate(struct meta_service *s, enum meta_certificate_use of,
                              int64_t expires_s, int64_t soon_s, uint64_t now)
{
    struct meta_certificate_seen *seen = &s->certificate[of];
    const int64_t left_s = expires_s - (int64_t)(meta_service_wall_ms(s, now) / 1000);
    const char *name = s->hearing.self.name[0] != '\0' ? s->hearing.self.name : "kedge-metad";
    struct meta_liveness_event event = {.certificate = of, .ends_ms = (uint64_t)expires_s * 1000};
    if (expires_s != seen->expires_s) {
        event.certificate_state = META_CERTIFICATE_RENEWED;
        if (seen->expires_s != 0 && expires_s != 0)
            meta_service_announce(s, name, "", now, &event);
        *seen = (struct meta_certificate_seen){.expires_s = expires_s};
    }
    if (expires_s == 0 || left_s > soon_s)
        return;
    event.certificate_state = left_s > 0 ? META_CERTIFICATE_EXPIRING : META_CERTIFICATE_EXPIRED;
    if (left_s > 0 ? !seen->said_soon && !seen->said_end : !seen->said_end)
        meta_service_announce(s, name, "", now, &event);
    seen->said_soon = true;
    seen->said_end |= left_s <= 0;
}
