package audio

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The files were made by the ffmpeg program from the formulas of want: ffmpeg -f lavfi -i
// aevalsrc=..., and that of 32 bits by flac 1.4.2 from a WAV file (flac -8). Its channels are
// nearly opposite, so that their difference has 33 bits. A stereo file is read as the mean of its
// channels.
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
		{"stereo32.flac", Info{44100, 2, 1200}, func(s float64) float64 { return 0.0005 * math.Sin(2*math.Pi*3000*s) / 2 }, 1.0 / (1 << 31)},
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

// TestChannels checks that both channels of a file are read, whose mean is that of Read. The values of
// stereo24.flac are the formulas of TestFLAC.
func TestChannels(t *testing.T) {
	t.Parallel()
	wav := filepath.Join(t.TempDir(), "a.wav")
	if err := os.WriteFile(wav, wavOf(1, 2, 16, 8000, false, 0, 0.5, -0.5, -1, 0.25, -0.125), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]func(c, i int) float64{
		wav: func(c, i int) float64 { return [][]float64{{0, -0.5, 0.25}, {0.5, -1, -0.125}}[c][i] },
		"testdata/stereo24.flac": func(c, i int) float64 {
			s := 2 * math.Pi * float64(i) / 44100
			return []float64{0.5 * math.Sin(440*s), 0.25 * math.Sin(1000*s)}[c]
		},
	} {
		rate, channels, err := ReadChannels(path)
		if err != nil || len(channels) != 2 {
			t.Fatalf("%s: %d channels, error %v", path, len(channels), err)
		}
		clip, err := Read(path)
		if err != nil || clip.Rate != rate || len(clip.Wave) != len(channels[0]) || len(clip.Wave) != len(channels[1]) {
			t.Fatalf("%s: %d and %d values at %d Hz, and %d of their mean at %d: %v", path, len(channels[0]), len(channels[1]), rate, len(clip.Wave), clip.Rate, err)
		}
		for i, mean := range clip.Wave {
			a, b := float64(channels[0][i]), float64(channels[1][i])
			if math.Abs(a-want(0, i)) > 1e-6 || math.Abs(b-want(1, i)) > 1e-6 || math.Abs((a+b)/2-float64(mean)) > 1e-6 {
				t.Fatalf("%s: values %v and %v at %d, want %v and %v; their mean is %v", path, a, b, i, want(0, i), want(1, i), mean)
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

// A FLAC file after an ID3 tag, as some taggers write it, is read as without, and so is WAV. MP3
// after a tag is an error that names it.
func TestAfterID3(t *testing.T) {
	t.Parallel()
	for name, tag := range map[string][]byte{
		"tag":             append([]byte("ID3\x03\x00\x00\x00\x00\x01\x05"), make([]byte, 128+5)...),
		"tag with footer": append([]byte("ID3\x04\x00\x10\x00\x00\x00\x03abc"), make([]byte, 10)...),
	} {
		flac, err := os.ReadFile("testdata/tone16.flac")
		if err != nil {
			t.Fatal(err)
		}
		var wav bytes.Buffer
		if err := WriteWAV(&wav, Clip{8000, []float32{0, 0.5, 1}}); err != nil {
			t.Fatal(err)
		}
		for format, data := range map[string][]byte{"flac": flac, "wav": wav.Bytes()} {
			want, err := Decode(data)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "a.flac")
			if err := os.WriteFile(path, append(slices.Clone(tag), data...), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := Read(path)
			if err != nil || got.Rate != want.Rate || !slices.Equal(got.Wave, want.Wave) {
				t.Errorf("%s after a %s: %d values at %d Hz, error %v; want %d", format, name, len(got.Wave), got.Rate, err, len(want.Wave))
			}
			if info, err := Probe(path); err != nil || info != (Info{want.Rate, 1, len(want.Wave)}) {
				t.Errorf("%s after a %s: header %+v, error %v", format, name, info, err)
			}
		}
		if _, err := Decode(append(slices.Clone(tag), "\xff\xfb\x90\x00"...)); err == nil || !strings.Contains(err.Error(), "MP3") {
			t.Errorf("MP3 after a %s: error %v", name, err)
		}
	}
}

// What follows the last value, such as an ID3 tag of version 1, is not read. A byte that differs is
// an error by the checksum of its frame.
func TestAfterFLAC(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"tone16.flac", "stereo24.flac", "stereo32.flac"} {
		data, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		want, err := Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(append(slices.Clone(data), "TAG"+strings.Repeat("x", 125)...))
		if err != nil || !slices.Equal(got.Wave, want.Wave) {
			t.Errorf("%s with a tag: %d values, error %v, want %d", file, len(got.Wave), err, len(want.Wave))
		}
		for at := len(data) - 1000; at < len(data); at += 7 {
			damaged := slices.Clone(data)
			damaged[at] ^= 0x10
			if _, err := Decode(damaged); err == nil || !strings.Contains(err.Error(), "FLAC") {
				t.Errorf("%s: byte %d differs, and the error is %v", file, at, err)
			}
		}
	}
}
