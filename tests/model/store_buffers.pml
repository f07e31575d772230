/* SPDX-License-Identifier: Apache-2.0 */
/* Memory as processors have it that may keep a store back (total store order, as x86's): what a
 * thread has stored waits in a buffer of its own, in order, while the thread goes on and loads; and
 * others see it when it leaves, at any time. A barrier waits until the buffer is empty, and so does
 * an operation that reads and writes at once.
 *
 * A model says THREADS and VARIABLES before it includes this, and begins a drain() for each thread.
 * No thread loads what it stores itself, so that a load never has to look into its own buffer. */
#define BUFFER 2

byte planted; /* the error, by its number: 0, none; else the model says which */
byte memory[VARIABLES];
chan stores[THREADS] = [BUFFER] of { byte, byte };

inline store(thread, variable, value) {
    stores[thread]!variable,value
}

inline load(thread, variable, into) {
    atomic {
        assert(!stores[thread]??[variable,_]);
        into = memory[variable]
    }
}

inline barrier(thread) {
    empty(stores[thread])
}

/* But where its absence is what is planted. */
inline barrier_unless(plant, thread) {
    (planted == plant || empty(stores[thread]))
}

/* As atomic_fetch_add(). */
inline add(thread, variable) {
    atomic { empty(stores[thread]); memory[variable] = memory[variable] + 1 }
}

proctype drain(byte thread) {
    byte variable, value;
end:
    do
    :: d_step {
           stores[thread]?variable,value;
           memory[variable] = value;
           variable = 0;
           value = 0
       }
    od
}

c_decl {
\#include <stdlib.h>
}
#define choose_plant() c_code { now.planted = getenv("PLANT") != NULL ? atoi(getenv("PLANT")) : 0; }
