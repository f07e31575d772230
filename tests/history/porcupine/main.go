// SPDX-License-Identifier: Apache-2.0

// Asks porcupine whether a history, as tests/history/check.py describes it, is right: puts and
// deletes of each key, what each watch was told, and that all were told the same. Ends with 1 if it
// is not, and prints of what.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/anishathalye/porcupine"
)

type line struct {
	Op       string          `json:"op"`
	Key      string          `json:"key"`
	Value    *int64          `json:"value"`
	If       json.RawMessage `json:"if"`
	Call     float64         `json:"call"`
	Return   float64         `json:"return"`
	Outcome  string          `json:"outcome"`
	Revision *int64          `json:"revision"`
	Watcher  string          `json:"watcher"`
	From     int64           `json:"from"`
	Kind     string          `json:"kind"`
}

// What a key has; revision 0: of a put that nobody knows the end of.
type kept struct {
	there           bool
	value, revision int64
}

func holds(l *line, s kept) bool {
	switch c := string(l.If); c {
	case "", "null":
		return true
	case `"*"`:
		return s.there
	case `"absent"`:
		return !s.there
	default:
		return s.there && (s.revision == 0 || fmt.Sprint(s.revision) == c)
	}
}

func may(s kept) []interface{} { return []interface{}{s} }

func stepPut(l *line, s kept) []interface{} {
	revision := int64(0)
	if l.Revision != nil {
		revision = *l.Revision
	}
	to := kept{true, *l.Value, revision}
	if s.there && s.value == to.value && revision == 0 {
		to.revision = s.revision
	}
	grows := !s.there || s.revision == 0 || revision == 0 || revision > s.revision ||
		(revision == s.revision && s.value == to.value)
	switch {
	case l.Outcome == "unknown" && holds(l, s) && grows:
		return []interface{}{s, to}
	case l.Outcome == "unknown":
		return may(s)
	case l.Outcome == "changed" && (!holds(l, s) || s.there && s.revision == 0):
		return may(s)
	case l.Outcome == "ok" && holds(l, s) && grows:
		return may(to)
	}
	return nil
}

func stepDelete(l *line, s kept) []interface{} {
	switch {
	case l.Outcome == "unknown" && holds(l, s):
		return []interface{}{s, kept{}}
	case l.Outcome == "unknown":
		return may(s)
	case l.Outcome == "missing" && !s.there:
		return may(s)
	case l.Outcome == "changed" && (!holds(l, s) || s.there && s.revision == 0):
		return may(s)
	case l.Outcome == "ok" && holds(l, s) && s.there:
		return may(kept{})
	}
	return nil
}

var register = porcupine.NondeterministicModel{
	Init: func() []interface{} { return may(kept{}) },
	Step: func(state, input, output interface{}) []interface{} {
		if l := input.(*line); l.Op == "put" {
			return stepPut(l, state.(kept))
		} else {
			return stepDelete(l, state.(kept))
		}
	},
}

// A watch is told the revision after the last one, but for a store that was put back.
var watch = porcupine.Model{
	Init: func() interface{} { return int64(0) },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		l := input.(*line)
		if l.Op == "watch" {
			return true, l.From
		}
		r := *l.Revision
		return r == state.(int64)+1 || (l.Kind == "restore" && r > state.(int64)), r
	},
}

// A revision is written once.
var revision = porcupine.Model{
	Init: func() interface{} { return "" },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		l, value := input.(*line), "gone"
		if l.Value != nil {
			value = fmt.Sprint(*l.Value)
		}
		now := l.Kind + "/" + l.Key + "=" + value
		return state == "" || state == now, now
	},
}

func nanoseconds(seconds float64) int64 { return int64(seconds * 1e9) }

func readLines(path string) ([]*line, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var all []*line
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		l := new(line)
		if err := json.Unmarshal(scanner.Bytes(), l); err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, scanner.Err()
}

type history map[string][]porcupine.Operation

func (h history) add(name string, l *line, call, end int64) {
	h[name] = append(h[name], porcupine.Operation{Input: l, Call: call, Return: end})
}

// What watches were told says which of the puts without an answer were done.
func split(all []*line) (keys, watches, revisions history) {
	keys, watches, revisions = history{}, history{}, history{}
	told := map[string]*int64{}
	for i, l := range all {
		switch {
		case l.Op == "event":
			revisions.add(fmt.Sprint("revision ", *l.Revision), l, int64(2*i), int64(2*i+1))
			if l.Value != nil {
				told[fmt.Sprint(l.Key, "=", *l.Value)] = l.Revision
			}
			fallthrough
		case l.Op == "watch":
			watches.add("watch "+l.Watcher, l, int64(2*i), int64(2*i+1))
		}
	}
	for _, l := range all {
		end := nanoseconds(l.Return)
		if l.Op != "put" && l.Op != "delete" || l.Outcome == "refused" {
			continue
		}
		if l.Outcome == "unknown" {
			end = math.MaxInt64
			if l.Op == "put" && len(told) > 0 {
				l.Revision = told[fmt.Sprint(l.Key, "=", *l.Value)]
				if l.Revision == nil {
					continue
				}
			}
		}
		keys.add(l.Key, l, nanoseconds(l.Call), end)
	}
	return
}

func look(model porcupine.Model, h history) (wrong int) {
	for name, operations := range h {
		result := porcupine.CheckOperationsTimeout(model, operations, 2*time.Minute)
		if result != porcupine.Ok {
			fmt.Printf("found: %s: %s\n", name, result)
			wrong++
		}
	}
	return
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: porcupine FILE")
		os.Exit(2)
	}
	all, err := readLines(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	keys, watches, revisions := split(all)
	wrong := look(register.ToModel(), keys) + look(watch, watches) + look(revision, revisions)
	fmt.Printf("porcupine: %d keys, %d watches, %d revisions: %d offences\n", len(keys),
		len(watches), len(revisions), wrong)
	if wrong > 0 {
		os.Exit(1)
	}
}
