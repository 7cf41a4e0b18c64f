// Package turbojpeg decodes JPEG images with libjpeg-turbo, if the system has it, or the library is
// beside the program as in the wheel.
//
// The pixels are those that PIL and torchvision read with the same version of the library, to the
// bit. Go's decoder rounds the inverse cosine transform differently: 3 % of the values differ, by 3
// of 255 at most.
package turbojpeg

import (
	"image"
	"image/color"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/noether-ml/noether/internal/chroma"
	"github.com/noether-ml/noether/internal/dynlib"
	"github.com/noether-ml/noether/internal/machine"
)

// Env names the environment variable that holds the path of the library, or "none" to do without.
const Env = "NOETHER_JPEG"

// Constants of turbojpeg.h, with their enumeration or name there.
const (
	colorRGB, colorYCbCr, colorGray, colorCMYK, colorYCCK = 0, 1, 2, 3, 4 // TJCS
	pixelRGB, pixelGray, pixelCMYK                        = 0, 6, 11      // TJPF
	stopOnWarning                                         = 8192          // TJFLAG_STOPONWARNING: damaged data are an error
	// TJFLAG_LIMITSCANS: an error for over 500 progressive scans.
	limitScans = 32768
)

// A library holds the functions of the TurboJPEG API, which versions 2 and 3 share.
type library struct {
	path       string
	problem    error // why there is no library; nil: there is one
	newDecoder func() uintptr
	readHeader func(decoder uintptr, data *byte, bytes uint64, width, height, subsampling, colorspace *int32) int32
	decompress func(decoder uintptr, data *byte, bytes uint64, pixels *byte, width, pitch, height, format, flags int32) int32
	lastError  func(decoder uintptr) string

	mu   sync.Mutex
	idle []uintptr // decoders that no goroutine uses
}

// take returns a decoder, which one goroutine at a time may use, or 0 if the library makes none.
func (l *library) take() uintptr {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last := len(l.idle) - 1; last >= 0 {
		d := l.idle[last]
		l.idle = l.idle[:last]
		return d
	}
	return l.newDecoder()
}

// giveBack makes a decoder available again.
func (l *library) giveBack(decoder uintptr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle = append(l.idle, decoder)
}

// loaded returns the library. It is opened at the first call.
var loaded = sync.OnceValue(func() *library {
	l := &library{}
	l.path, l.problem = dynlib.Find("libjpeg-turbo", Env, candidates(),
		map[string]any{"tjInitDecompress": &l.newDecoder, "tjDecompressHeader3": &l.readHeader, "tjDecompress2": &l.decompress, "tjGetErrorStr2": &l.lastError})
	return l
})

// candidates returns the names and paths under which systems keep the library.
func candidates() []string {
	switch runtime.GOOS {
	case "darwin":
		return []string{"/opt/homebrew/opt/jpeg-turbo/lib/libturbojpeg.dylib", "/usr/local/opt/jpeg-turbo/lib/libturbojpeg.dylib", "libturbojpeg.dylib"}
	case "windows":
		return []string{"turbojpeg.dll", `C:\libjpeg-turbo64\bin\turbojpeg.dll`}
	}
	names := []string{"libturbojpeg.so.0", "libturbojpeg.so"}
	if own := filepath.Join(filepath.Dir(machine.Program()), names[0]); isFile(own) {
		return append([]string{own}, names...)
	}
	return names
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// Find returns the path of the library, or the reason why there is none.
func Find() (path string, err error) {
	l := loaded()
	return l.path, l.problem
}

// Hint returns how to install the library on this system.
func Hint() string {
	return machine.HowToInstall(machine.Packages{Library: "libjpeg-turbo", Debian: "libturbojpeg0", Fedora: "turbojpeg", Arch: "libjpeg-turbo",
		Alpine: "libturbojpeg", Homebrew: "jpeg-turbo", Conda: "libjpeg-turbo"})
}

// missed is set when an image was to be decoded without a library.
var missed atomic.Bool

// Missed reports whether an image was decoded without the library because there is none.
func Missed() bool { return missed.Load() && os.Getenv(Env) != "none" }

// Decode returns the image of JPEG data: an *RGB, or an *image.Gray for an image without colour. It
// returns false if there is no library, and for what it leaves to another decoder: images of
// another size than width x height, or damaged.
func Decode(data []byte, width, height int) (image.Image, bool) {
	l := loaded()
	if l.problem != nil {
		missed.Store(true)
		return nil, false
	}
	if len(data) == 0 || width <= 0 || height <= 0 {
		return nil, false
	}
	d := l.take()
	if d == 0 {
		return nil, false
	}
	defer l.giveBack(d)
	var w, h, subsampling, colorspace int32
	if l.readHeader(d, &data[0], uint64(len(data)), &w, &h, &subsampling, &colorspace) != 0 || int(w) != width || int(h) != height {
		return nil, false
	}
	var img image.Image
	var pixels []uint8
	format, channels := int32(pixelRGB), 3
	switch bounds := image.Rect(0, 0, width, height); colorspace {
	case colorGray:
		gray := image.NewGray(bounds)
		img, pixels, format, channels = gray, gray.Pix, pixelGray, 1
	case colorRGB, colorYCbCr:
		rgb := &RGB{Pix: make([]uint8, width*height*3), Rect: bounds}
		img, pixels = rgb, rgb.Pix
	case colorCMYK, colorYCCK:
		pixels, format, channels = make([]uint8, width*height*4), pixelCMYK, 4
	default:
		return nil, false
	}
	decode := func(flags int32) bool {
		return l.decompress(d, &data[0], uint64(len(data)), &pixels[0], w, w*int32(channels), h, format, flags) == 0
	}
	ok := decode(stopOnWarning | limitScans)
	if !ok && strings.Contains(l.lastError(d), "extraneous bytes before marker 0xd9") { // the end marker: all pixels are there
		// The result is -1 for the warning.
		decode(limitScans)
		ok = true
	}
	if ok && format == pixelCMYK {
		for i, v := range pixels { // files hold 255 for no ink, as PIL assumes of all
			pixels[i] = 255 - v
		}
		img = &RGB{Pix: chroma.CMYK(pixels, height, width, 4*width), Rect: image.Rect(0, 0, width, height)}
	}
	return img, ok
}

// An RGB is an image of three bytes a pixel: red, green and blue.
type RGB struct {
	Pix  []uint8 // rows from the top, without gaps
	Rect image.Rectangle
}

// ColorModel returns that of RGBA images.
func (*RGB) ColorModel() color.Model { return color.RGBAModel }

// Bounds returns the rectangle of the image.
func (m *RGB) Bounds() image.Rectangle { return m.Rect }

// At returns the colour of a pixel, and transparent black outside the image.
func (m *RGB) At(x, y int) color.Color {
	if !image.Pt(x, y).In(m.Rect) {
		return color.RGBA{}
	}
	p := m.Pix[3*((y-m.Rect.Min.Y)*m.Rect.Dx()+x-m.Rect.Min.X):]
	return color.RGBA{p[0], p[1], p[2], 255}
}
