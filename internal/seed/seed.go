// Package seed gives every random draw a generator of its own, keyed by what the draw is for.
//
// A score must depend on the study alone, not on batch size, worker count or order; so nothing draws from
// a shared stream. The key is the study's seed and the names that tell one draw from all others: data name,
// sample index, transform name, trial.
package seed

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// Rand returns the generator of the given key. Parts may be strings and integers; equal keys give equal
// generators on every machine.
func Rand(seed uint64, parts ...any) *rand.Rand {
	h := sha256.New()
	var b [8]byte
	put := func(v uint64) {
		binary.LittleEndian.PutUint64(b[:], v)
		h.Write(b[:])
	}
	put(seed)
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			put(uint64(len(p)))
			h.Write([]byte(p))
		case int:
			put(^uint64(0)) // keeps the number 3 apart from a string of length 3
			put(uint64(p))
		default:
			panic(fmt.Sprintf("seed: %T cannot be part of a key", p))
		}
	}
	s := h.Sum(nil)
	return rand.New(rand.NewPCG(binary.LittleEndian.Uint64(s), binary.LittleEndian.Uint64(s[8:])))
}
