package video

import (
	"bufio"
	"bytes"
	"testing"

	"github.com/noether-ml/noether/tensor"
)

// FuzzGIF checks that the frames read from any bytes are not empty. It reads at most three frames.
func FuzzGIF(f *testing.F) {
	f.Add([]byte("GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"))
	f.Add([]byte("GIF89a\xff\xff\xff\xff\x80\x00\x00")) // 65535 x 65535 pixels, no frame
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 10 && word(data[6:])*word(data[8:]) > 1<<20 {
			return // width and height give a canvas that takes long to fill
		}
		n := 0
		// composeFrames stops when the function returns false.
		_ = composeFrames(data, func(frame tensor.Tensor) bool {
			if frame.Rank() != 3 || frame.Len() == 0 {
				t.Fatalf("a frame of shape %v", frame.Shape)
			}
			n++
			return n < 3
		})
	})
}

// FuzzPPM checks that a stream of PPM (portable pixmap) images, as ffmpeg writes it, gives no frame
// of more values than the stream has bytes.
func FuzzPPM(f *testing.F) {
	f.Add([]byte("P6\n2 1\n255\nabcdef"))
	f.Add([]byte("P6\n99999999 99999999\n255\n"))
	f.Add([]byte("P6\n-1 1\n255\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _, _ = readImages(bufio.NewReader(bytes.NewReader(data)), func(frame tensor.Tensor) bool {
			if frame.Rank() != 3 || frame.Len() > len(data) {
				t.Fatalf("%d bytes gave a frame of shape %v", len(data), frame.Shape)
			}
			return true
		})
	})
}

// FuzzNaturalOrder checks that naturalOrder, which compares runs of digits in names as numbers (so
// frame9 comes before frame10), is antisymmetric and transitive.
func FuzzNaturalOrder(f *testing.F) {
	f.Add("frame9", "frame10", "frame010")
	f.Add("", "0", "00")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		if naturalOrder(a, b) != -naturalOrder(b, a) {
			t.Fatalf("%q and %q compare as less in both orders", a, b)
		}
		if naturalOrder(a, b) <= 0 && naturalOrder(b, c) <= 0 && naturalOrder(a, c) > 0 {
			t.Fatalf("the order of %q, %q and %q is not transitive", a, b, c)
		}
	})
}
