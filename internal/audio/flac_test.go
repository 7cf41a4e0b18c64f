package audio

import (
	"math"
	"os"
	"strings"
	"testing"
)

// The files were made by the ffmpeg program from the formulas of want: ffmpeg -f lavfi -i
// aevalsrc=... A stereo file is read as the mean of its channels.
func TestFLAC(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file string
		info Info                    // rate in Hz, channels, values of a channel
		want func(s float64) float64 // the value at s seconds
		step float64                 // of the quantisation to 16 or 24 bits
	}{
		{"tone16.flac", Info{8000, 1, 2000}, func(s float64) float64 { return 0.5 * math.Sin(2*math.Pi*440*s) }, 1.0 / (1 << 15)},
		{"stereo24.flac", Info{44100, 2, 1103}, func(s float64) float64 {
			return (0.5*math.Sin(2*math.Pi*440*s) + 0.25*math.Sin(2*math.Pi*1000*s)) / 2
		}, 1.0 / (1 << 23)},
	} {
		path := "testdata/" + c.file
		info, err := Probe(path)
		if err != nil || info != c.info {
			t.Errorf("%s: %+v, %v, want %+v", c.file, info, err, c.info)
		}
		clip, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		if clip.Rate != c.info.Rate || len(clip.Wave) != c.info.Frames {
			t.Fatalf("%s: %d values at %d Hz, want %d at %d Hz", c.file, len(clip.Wave), clip.Rate, c.info.Frames, c.info.Rate)
		}
		for i, v := range clip.Wave {
			if want := c.want(float64(i) / float64(clip.Rate)); math.Abs(float64(v)-want) > 1.1*c.step {
				t.Fatalf("%s: value %d is %v, want %v", c.file, i, v, want)
			}
		}
	}
}

func TestTruncatedFLAC(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/tone16.flac")
	if err != nil {
		t.Fatal(err)
	}
	// The file ends within one of its three metadata blocks, or within its last frame.
	for _, part := range []int{20, 50, len(data) / 2, len(data) - 3} {
		if _, err := Decode(data[:part]); err == nil || !strings.Contains(err.Error(), "FLAC") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%d of %d bytes: error %v, want one line that names FLAC", part, len(data), err)
		}
	}
}
