// Package gpu lists the graphics processors of this machine with their names and memory, as their
// drivers tell them: by Vulkan, and by CUDA for NVIDIA. Nothing is computed on them here.
//
//	for _, a := range gpu.Vulkan() {
//		fmt.Println(a.Name, a.Kind, a.Memory)
//	}
package gpu

import (
	"bytes"
	"cmp"
	"slices"
)

// A Kind states how an adapter is built.
type Kind string

// The kinds of adapters.
const (
	Discrete   Kind = "discrete"   // with memory of its own
	Integrated Kind = "integrated" // shares the memory of the processor
	Virtual    Kind = "virtual"    // of a virtual machine
	Software   Kind = "software"   // the processor itself computes
	Other      Kind = "other"
)

// kinds holds all kinds, in the order in which programs that compute on a GPU prefer them.
var kinds = []Kind{Discrete, Integrated, Virtual, Other, Software}

// An Adapter is a graphics processor, or a driver that emulates one.
type Adapter struct {
	Name   string
	Kind   Kind
	Memory int64 // bytes in total; 0: the driver does not tell
	Free   int64 // bytes that this process may allocate now; 0: the driver does not tell
}

func sorted(list []Adapter) []Adapter {
	slices.SortStableFunc(list, func(a, b Adapter) int {
		return cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind))
	})
	return list
}

// text returns the string up to the first zero byte.
func text(b []byte) string {
	if end := bytes.IndexByte(b, 0); end >= 0 {
		b = b[:end]
	}
	return string(b)
}

// maxAdapters bounds the number of adapters that are listed.
const maxAdapters = 64
