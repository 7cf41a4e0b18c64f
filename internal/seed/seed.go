// Package seed derives the random generator of each draw from a key.
//
// A score depends on the study alone (the file that says what is measured), not on batch size,
// number of workers or order of samples. So no two draws share a stream. The key is the study's
// seed and what identifies the draw, such as the names of the data and of the transformation, the
// index of the sample and the number of the trial (one of several repetitions of every draw).
package seed

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// Rand returns the generator of a key. Parts are strings and integers. Equal keys give equal
// generators on every machine. It panics on a part of another type.
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
			put(^uint64(0)) // so that the number 3 and a string of length 3 differ
			put(uint64(p))
		default:
			panic(fmt.Sprintf("seed: %T cannot be part of a key", p))
		}
	}
	s := h.Sum(nil)
	return rand.New(rand.NewPCG(binary.LittleEndian.Uint64(s), binary.LittleEndian.Uint64(s[8:])))
}
