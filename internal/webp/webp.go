// Package webp decodes WebP images with libwebp, if the system has it.
//
// The pixels are equal to the bit to those of PIL, and to those of golang.org/x/image/webp after
// its chroma is converted by package chroma. libwebp takes half of the time of the latter.
package webp

import (
	"runtime"
	"sync"

	"github.com/noether-ml/noether/internal/dynlib"
	"github.com/noether-ml/noether/internal/machine"
)

// Env names the environment variable that holds the path of the library, or "none" to do without.
const Env = "NOETHER_WEBP"

// A library holds functions of libwebp's simple interface, which has not changed since version 0.2.
type library struct {
	path     string
	problem  error // why there is no library; nil: there is one
	readInfo func(data *byte, bytes uintptr, width, height *int32) int32
	// decode writes an image to pixels, of size bytes, with pitch bytes from row to row. It returns
	// pixels, or nil for data that it cannot decode.
	decode func(data *byte, bytes uintptr, pixels *byte, size uintptr, pitch int32) *byte
}

// loaded returns the library. It is opened at the first call.
var loaded = sync.OnceValue(func() *library {
	l := &library{}
	l.path, l.problem = dynlib.Find("libwebp", Env, candidates(), map[string]any{"WebPGetInfo": &l.readInfo, "WebPDecodeRGBInto": &l.decode})
	return l
})

// candidates returns the names and paths under which systems keep the library.
func candidates() []string {
	switch runtime.GOOS {
	case "darwin":
		return []string{"/opt/homebrew/opt/webp/lib/libwebp.dylib", "/usr/local/opt/webp/lib/libwebp.dylib", "libwebp.dylib"}
	case "windows":
		return []string{"libwebp.dll"}
	}
	return []string{"libwebp.so.7", "libwebp.so"}
}

// Find returns the path of the library, or the reason why there is none.
func Find() (path string, err error) {
	l := loaded()
	return l.path, l.problem
}

// Hint returns how to install the library on this system.
func Hint() string {
	return machine.HowToInstall(machine.Packages{Library: "libwebp", Debian: "libwebp7", Fedora: "libwebp", Arch: "libwebp", Alpine: "libwebp",
		Homebrew: "webp", Conda: "libwebp-base"})
}

// Decode returns the pixels of an image of width x height: rows from the top, of red, green and
// blue for each pixel. Transparency is dropped. ok is false if there is no library, and for data
// that the caller must decode in another way or reject: animations, images of another size, damaged
// ones.
func Decode(data []byte, width, height int) (pixels []uint8, ok bool) {
	l := loaded()
	if l.problem != nil || len(data) == 0 || width <= 0 || height <= 0 {
		return nil, false
	}
	var w, h int32
	if l.readInfo(&data[0], uintptr(len(data)), &w, &h) == 0 || int(w) != width || int(h) != height {
		return nil, false
	}
	pixels = make([]uint8, 3*width*height)
	return pixels, l.decode(&data[0], uintptr(len(data)), &pixels[0], uintptr(len(pixels)), 3*w) != nil
}
