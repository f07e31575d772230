/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/wait.h"

#include "base/assert.h"
#include "schedule/vqp.h"
#include "session_state.h"

const uint8_t vqp_wait_places[VQP_WAITS] = {
    [WAIT_OWN] = PLACE_ENDPOINT,
    [WAIT_RECORD] = PLACE_ENDPOINT,
    [WAIT_PATH] = PLACE_ENDPOINT,
    [WAIT_SIGN] = PLACE_ENDPOINT,
    [WAIT_REGION] = PLACE_ENDPOINT,
    [WAIT_REST] = PLACE_ENDPOINT,
    [WAIT_NEWS] = PLACE_ENDPOINT,
    [WAIT_CREDIT] = PLACE_ENDPOINT,
    [WAIT_RECEIVER] = PLACE_ENDPOINT,
    [WAIT_FLOW] = PLACE_LANE,
    [WAIT_ASKING_RECORD] = PLACE_LANE,
    [WAIT_ASKING_PATH] = PLACE_LANE,
    [WAIT_ASKING_REGION] = PLACE_LANE,
    [WAIT_QP] = PLACE_LANE,
    [WAIT_SMALL] = PLACE_LANE,
    [WAIT_BATCHES] = PLACE_LANE,
    [WAIT_LENDING] = PLACE_LANE,
    [WAIT_INITIATOR] = PLACE_LANE,
    [WAIT_TURNS] = PLACE_LANE,
    [WAIT_PASS] = PLACE_LANE,
    [WAIT_ROOM] = PLACE_ROOM,
    [WAIT_TENANT_WINDOW] = PLACE_WINDOW,
    [WAIT_DESTINATION_WINDOW] = PLACE_WINDOW,
    [WAIT_DEVICE_WINDOW] = PLACE_WINDOW,
};

/* It leaves one place before it goes to another, which keeps it in one list at a time. */
static const uint8_t wait_moves[WAIT_PLACES][WAIT_PLACES] = {
    [PLACE_NONE] = {0, 1, 1, 1, 1}, [PLACE_ENDPOINT] = {1}, [PLACE_LANE] = {1}, [PLACE_ROOM] = {1},
    [PLACE_WINDOW] = {1},
};

void lane_vqp_wait_move(struct vqp *q, enum vqp_wait to)
{
    BASE_ASSERT(wait_moves[vqp_wait_places[q->wait]][vqp_wait_places[to]]);
    session_count(&q->session->memory->shown.waits[q->wait], -1);
    session_count(&q->session->memory->shown.waits[to], 1);
    q->wait = (uint8_t)to;
}
