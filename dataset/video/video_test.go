package video

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/color/palette"
	"image/gif"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/testdata"
	"github.com/noether-ml/noether/tensor"
)

// moving returns n grey frames of h x w pixels: a random image that moves to the right by a pixel
// per frame. From frame cut on, unless cut is 0, it is another image of more contrast.
func moving(n, h, w, cut int) []*image.Gray {
	var out []*image.Gray
	for t := range n {
		seed, spread := uint64(1), 128
		if cut > 0 && t >= cut {
			seed, spread = 2, 256
		}
		r := rand.New(rand.NewPCG(seed, 0))
		texture := make([]uint8, h*(w+n))
		for i := range texture {
			texture[i] = uint8(r.IntN(spread))
		}
		img := image.NewGray(image.Rect(0, 0, w, h))
		for y := range h {
			copy(img.Pix[y*w:(y+1)*w], texture[y*(w+n)+n-t:])
		}
		out = append(out, img)
	}
	return out
}

// saved writes the frames as PNG files in a new folder and returns its path.
func saved(t *testing.T, frames []*image.Gray) string {
	t.Helper()
	dir := t.TempDir()
	for i, img := range frames {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("frame%d.png", i)))
		if err != nil {
			t.Fatal(err)
		}
		if err := png.Encode(f, img); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	return dir
}

// savedGIF writes the frames as an animated GIF and returns its path.
func savedGIF(t *testing.T, frames []*image.Gray) string {
	t.Helper()
	var g gif.GIF
	greys := make(color.Palette, 256)
	for i := range greys {
		greys[i] = color.Gray{uint8(i)}
	}
	for _, img := range frames {
		g.Image = append(g.Image, &image.Paletted{Pix: img.Pix, Stride: img.Stride, Rect: img.Rect, Palette: greys})
		g.Delay = append(g.Delay, 4) // hundredths of a second
	}
	path := filepath.Join(t.TempDir(), "frames.gif")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := gif.EncodeAll(f, &g); err != nil {
		t.Fatal(err)
	}
	return path
}

func opened(t *testing.T, o Options) *Source {
	t.Helper()
	src, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() })
	return src
}

// patch returns sample i, a square cut out of a frame, as it is stored.
func patch(t *testing.T, src *Source, i int) dataset.Sample {
	t.Helper()
	s, err := src.At(t.Context(), i, dataset.Frame{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A place is the position of one patch in all frames. TestTrajectoryFollowsThePlace checks that
// patches are cut from the frames, and that a trajectory has the patches of one place in successive
// frames, from -Reach to Reach frames later. With the threshold 1 for cuts, all frames are one
// scene. Raw patches are not whitened.
func TestTrajectoryFollowsThePlace(t *testing.T) {
	t.Parallel()
	frames := moving(14, 40, 60, 0)
	src := opened(t, Options{Paths: []string{saved(t, frames)}, Cuts: 1, Patches: Patches{Raw: true, Size: 6, Places: 9, Reach: 2, Seed: 5}})
	if src.Len() != 14*9 {
		t.Fatalf("%d samples of 14 frames and 9 places", src.Len())
	}
	if got := dataset.Amounts(src); !slices.Equal(got, []float64{-2, -1, 0, 1, 2}) {
		t.Fatalf("a trajectory covers the frames %v, want -2 to 2", got)
	}
	complete := 0
	for i := range src.Len() {
		sample := patch(t, src, i)
		frame, y, x := int(sample.Factors["frame"]), int(sample.Factors["y"]), int(sample.Factors["x"])
		for j, v := range sample.Input.Data {
			if want := float32(frames[frame].GrayAt(x+j%6, y+j/6).Y) / 255; v != want {
				t.Fatalf("sample %d, value %d: %g, the frame has %g", i, j, v, want)
			}
		}
		trajectory := src.Trajectory(i)
		if (trajectory == nil) != (frame < 2 || frame > 11) {
			t.Fatalf("sample %d of frame %d has the trajectory %v", i, frame, trajectory)
		}
		for step, k := range trajectory {
			s := src.Describe(k)
			if s.Factors["x"] != sample.Factors["x"] || s.Factors["y"] != sample.Factors["y"] || int(s.Factors["frame"]) != frame+step-2 {
				t.Fatalf("sample %d of place %v, %v in frame %d: its trajectory has %v where frame %d of the same place is expected", i, sample.Factors["y"], sample.Factors["x"], frame, s.Factors, frame+step-2)
			}
		}
		if trajectory != nil {
			complete++
		}
	}
	if complete != 10*9 { // frames 2 to 11 of 14, at 9 places
		t.Errorf("%d samples have a trajectory, want 90", complete)
	}
}

// frameCounts returns the numbers of frames of the scenes, which are sequences without a cut.
func frameCounts(s *Source) (counts []int) {
	for _, scene := range s.scenes {
		counts = append(counts, scene.frames)
	}
	return counts
}

// TestTrajectoriesStayInScenes opens two videos, of which the first has a cut after 5 of 12 frames.
func TestTrajectoriesStayInScenes(t *testing.T) {
	t.Parallel()
	src := opened(t, Options{Paths: []string{saved(t, moving(12, 30, 30, 5)), saved(t, moving(6, 30, 30, 0))}, Patches: Patches{Size: 5, Places: 4, Reach: 1}})
	if frames := frameCounts(src); !slices.Equal(frames, []int{5, 7, 6}) {
		t.Fatalf("scenes of %v frames, not 5, 7 and 6", frames)
	}
	for i := range src.Len() {
		for _, k := range src.Trajectory(i) {
			if src.Describe(k).Factors["scene"] != src.Describe(i).Factors["scene"] {
				t.Fatalf("the trajectory of sample %d leaves its scene", i)
			}
		}
	}
}

// TestSameSamplesFromEveryKindOfFile checks that a folder of frames, an animated GIF and a lossless
// video give the same samples.
func TestSameSamplesFromEveryKindOfFile(t *testing.T) {
	t.Parallel()
	frames := moving(12, 36, 48, 7)
	folder := saved(t, frames)
	paths := []string{folder, savedGIF(t, frames)}
	if ffmpeg, err := findFFmpeg(""); err == nil {
		out := filepath.Join(t.TempDir(), "frames.mkv")
		if text, err := exec.Command(ffmpeg, "-v", "error", "-i", filepath.Join(folder, "frame%d.png"), "-c:v", "ffv1", "-pix_fmt", "gray", out).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		paths = append(paths, out)
	} else {
		t.Log("without ffmpeg: no video")
	}
	var first *Source
	for _, p := range paths {
		src := opened(t, Options{Paths: []string{p}, Patches: Patches{Size: 8, Places: 3, Reach: 1, Channels: 3, Width: 32, Height: 24}})
		if first == nil {
			first = src
			continue
		}
		if src.Len() != first.Len() {
			t.Fatalf("%s: %d samples, not %d", filepath.Base(p), src.Len(), first.Len())
		}
		for i := range src.Len() {
			got, want := patch(t, src, i).Input, patch(t, first, i).Input
			for j, v := range got.Data {
				if math.Abs(float64(v-want.Data[j])) > 1e-4 {
					t.Fatalf("%s: sample %d, value %d: %g, in the folder %g", filepath.Base(p), i, j, v, want.Data[j])
				}
			}
		}
	}
}

// TestGIFFramesAreComposed checks images that cover one column each. Before the next one is drawn,
// the first column is restored to what was there (DisposalPrevious), the second to the background.
func TestGIFFramesAreComposed(t *testing.T) {
	t.Parallel()
	column := func(x int) *image.Paletted {
		img := image.NewPaletted(image.Rect(x, 0, x+1, 4), palette.Plan9)
		for i := range img.Pix {
			img.Pix[i] = uint8(img.Palette.Index(color.White))
		}
		return img
	}
	whole := image.NewPaletted(image.Rect(0, 0, 4, 4), palette.Plan9)
	g := &gif.GIF{Image: []*image.Paletted{whole, column(0), column(1), column(2)}, Delay: make([]int, 4),
		Disposal: []byte{gif.DisposalNone, gif.DisposalPrevious, gif.DisposalBackground, gif.DisposalNone}}
	path := filepath.Join(t.TempDir(), "x.gif")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := gif.EncodeAll(f, g); err != nil {
		t.Fatal(err)
	}
	f.Close()
	var rows []string
	for frame, err := range gifClip(path).frames(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		var row strings.Builder
		for _, v := range frame.Data[:4] {
			fmt.Fprint(&row, int(v))
		}
		rows = append(rows, row.String())
	}
	if want := []string{"0000", "1000", "0100", "0010"}; !slices.Equal(rows, want) {
		t.Errorf("the frames are %v, not %v", rows, want)
	}
}

// silence is a WAV file of 16 samples at 8 kHz.
const silence = "RIFF\x44\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00data\x20\x00\x00\x00" +
	"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	// Frames of 20 x 20 pixels, and a last one of another size.
	mixed := saved(t, moving(3, 20, 20, 0))
	other := saved(t, moving(1, 20, 24, 0))
	if err := os.Rename(filepath.Join(other, "frame0.png"), filepath.Join(mixed, "frame10.png")); err != nil {
		t.Fatal(err)
	}
	four := saved(t, moving(4, 20, 20, 0))
	for _, c := range []struct {
		name string
		o    Options
		want string
	}{
		{"no video", Options{Paths: []string{write("a.mp4", "this is no video")}}, "a.mp4: ffmpeg failed after frame 0"},
		{"only audio", Options{Paths: []string{write("s.mp4", silence)}}, "s.mp4: ffmpeg failed after frame 0: it has only audio or subtitles and no images"},
		{"no ffmpeg", Options{Paths: []string{write("b.mp4", "x")}, FFmpeg: filepath.Join(dir, "none")}, "animated GIFs and folders of frames do not need it"},
		{"a damaged GIF", Options{Paths: []string{write("c.gif", "GIF89a\x04\x00\x04\x00\x80\x00\x00")}}, "c.gif: damaged gif"},
		{"one frame", Options{Paths: []string{saved(t, moving(1, 20, 20, 0))}}, "there is only one frame"},
		{"four frames", Options{Paths: []string{four}}, "the longest scene has 4 frames, fewer than the 11 of a trajectory"},
		{"frames of two sizes", Options{Paths: []string{mixed}}, "frame 4 is 24 x 20 pixels and the earlier ones 20 x 20"},
		{"patches larger than frames", Options{Paths: []string{four}, Patches: Patches{Size: 21}}, "patches of 21 pixels do not fit into frames of 20 x 20"},
		{"patches larger than any frame", Options{Paths: []string{four}, Patches: Patches{Size: 181}}, "patches of 181 pixels do not fit into frames of 320 x 180"},
		{"an empty folder", Options{Paths: []string{t.TempDir()}}, "neither videos"},
		{"no such file", Options{Paths: []string{filepath.Join(dir, "gone.mp4")}}, "no such file"},
		{"no paths", Options{}, "no files"},
		{"a threshold for cuts above 1", Options{Paths: []string{four}, Cuts: 2}, "from 0 to 1"},
		{"2 channels", Options{Paths: []string{four}, Patches: Patches{Channels: 2}}, "2 channels"},
	} {
		if c.name == "no video" || c.name == "only audio" {
			if _, err := findFFmpeg(""); err != nil {
				continue
			}
		}
		src, err := Open(t.Context(), c.o)
		if err == nil {
			src.Close()
			t.Errorf("%s: no error", c.name)
			continue
		}
		if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestCancelledWithinAFrame cancels while the first frame is handled. The output of the program, a
// stand-in for ffmpeg that writes PPM images, ends in the middle of the second one.
func TestCancelledWithinAFrame(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("needs a Unix shell: the stand-in for ffmpeg is a shell script")
	}
	program := filepath.Join(t.TempDir(), "ffmpeg")
	script := "#!/bin/sh\nprintf 'P6\\n1 1\\n255\\nabcP6\\n1 1\\n255\\na'\nexec sleep 60\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := decode(ctx, program, "clip.mp4", func(tensor.Tensor) bool {
		cancel()
		return true
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, Options{Paths: []string{saved(t, moving(12, 20, 20, 0))}}); err == nil {
		t.Error("no error after the context was cancelled")
	}
}

// A fingerprint identifies the samples: the frames and the places of the patches.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	dir := saved(t, moving(4, 20, 20, 0))
	p := Patches{Size: 5, Places: 2, Reach: 1}
	a := opened(t, Options{Paths: []string{dir}, Patches: p})
	if b := opened(t, Options{Paths: []string{dir}, Patches: p}); a.Fingerprint() != b.Fingerprint() {
		t.Error("the same video has two fingerprints")
	}
	p.Seed = 1
	if b := opened(t, Options{Paths: []string{dir}, Patches: p}); a.Fingerprint() == b.Fingerprint() {
		t.Error("places of another seed have the same fingerprint")
	}
	os.Remove(filepath.Join(dir, "frame3.png"))
	p.Seed = 0
	if b := opened(t, Options{Paths: []string{dir}, Patches: p}); a.Fingerprint() == b.Fingerprint() {
		t.Error("a video with one frame less has the same fingerprint")
	}
}

// TestCutsOfRealClips checks the cuts of a film of six shots, which were determined by hand, and of
// a clip without cuts.
func TestCutsOfRealClips(t *testing.T) {
	if testing.Short() {
		t.Skip("decodes two clips")
	}
	if _, err := findFFmpeg(""); err != nil {
		t.Skip(err)
	}
	src := opened(t, Options{Paths: []string{testdata.Path(t, "video", "bikes.mp4"), testdata.Path(t, "video", "carphone_pristine.mp4")}, Patches: Patches{Places: 4}})
	if frames, want := frameCounts(src), []int{30, 46, 61, 50, 55, 8, 120}; !slices.Equal(frames, want) {
		t.Errorf("scenes of %v frames, not %v", frames, want)
	}
	var sum, squares float64
	for i := range src.Len() {
		for _, v := range patch(t, src, i).Input.Data {
			sum, squares = sum+float64(v), squares+float64(v)*float64(v)
		}
	}
	n := float64(src.Len() * 14 * 14) // values: patches have 14 x 14 pixels by default
	mean, deviation := sum/n, math.Sqrt(squares/n-sum/n*sum/n)
	if math.Abs(mean-0.5) > 0.01 || deviation < 0.05 || deviation > 0.3 {
		t.Errorf("patches have the mean %.3f and the deviation %.3f: want a mean of about 0.5 and a deviation of 0.05 to 0.3", mean, deviation)
	}
}

// TestSequences checks the frames of GIFs in folders of classes, the first one alone without
// Frame.Frames, and files that cannot be read.
func TestSequences(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	frames := moving(4, 20, 24, 0)
	for _, name := range []string{"ant/a.gif", "bee/b.gif"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(savedGIF(t, frames), path); err != nil {
			t.Fatal(err)
		}
	}
	src, err := OpenSequences(t.Context(), dataset.FolderOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if src.Len() != 2 || !slices.Equal(src.Classes(), []string{"ant", "bee"}) || !dataset.AreSequences(dataset.Shuffle(src, 1)) {
		t.Errorf("%d sequences of %v", src.Len(), src.Classes())
	}
	f := dataset.Frame{Channels: 1}
	first, err := src.At(t.Context(), 1, f)
	if err != nil || len(first.Frames) != 0 || first.Label != 1 || first.Name != "bee/b.gif" {
		t.Fatalf("%+v, %v", first, err)
	}
	f.Frames = true
	all, err := src.At(t.Context(), 1, f)
	if err != nil || len(all.Frames) != 3 || !slices.Equal(all.Input.Data, first.Input.Data) {
		t.Fatalf("%d further frames, %v", len(all.Frames), err)
	}
	for k, frame := range append([]tensor.Tensor{all.Input}, all.Frames...) {
		for i, v := range frame.Data {
			if want := float32(frames[k].Pix[i]) / 255; math.Abs(float64(v-want)) > 1e-3 { // the weights of channels sum to 0.9999
				t.Fatalf("frame %d: value %d is %v, want %v", k, i, v, want)
			}
		}
	}
	f.Height, f.Width, f.Resize = 8, 8, 10
	if small, err := src.At(t.Context(), 0, f); err != nil || !slices.Equal(small.Frames[2].Shape, []int{1, 8, 8}) {
		t.Errorf("in a frame of 8 x 8: %v, %v", small.Input.Shape, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ant", "z.gif"), []byte("GIF89a"), 0o600); err != nil {
		t.Fatal(err)
	}
	damaged, err := OpenSequences(t.Context(), dataset.FolderOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	var bad *dataset.BadSample
	if _, err := damaged.At(t.Context(), 1, f); !errors.As(err, &bad) || bad.Name != "ant/z.gif" {
		t.Errorf("a damaged file: %v", err)
	}
	if _, err := OpenSequences(t.Context(), dataset.FolderOptions{Dir: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "no videos") {
		t.Errorf("an empty folder: %v", err)
	}
}
