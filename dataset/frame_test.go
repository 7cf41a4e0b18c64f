package dataset

import (
	"image"
	"image/color"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/tensor"
)

// drawFrame returns a random frame of moderate size. A Frame says how images are resized, cropped
// and converted to the channels that a model takes.
func drawFrame(t *rapid.T) Frame {
	size := rapid.IntRange(0, 40)
	return Frame{
		Resize: size.Draw(t, "resize"), Square: rapid.Bool().Draw(t, "square"),
		Height: size.Draw(t, "height"), Width: size.Draw(t, "width"),
		Channels:      rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "channels"),
		Interpolation: rapid.SampledFrom([]string{"", "bilinear", "bicubic", "lanczos", "nearest"}).Draw(t, "interpolation"),
	}
}

// TestFrameKeepsConstants checks that a constant image stays constant. A crop that extends beyond
// the resized image is 0 there.
func TestFrameKeepsConstants(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := drawFrame(t)
		c := rapid.SampledFrom([]int{1, 3}).Draw(t, "c")
		h, w := rapid.IntRange(1, 50).Draw(t, "h"), rapid.IntRange(1, 50).Draw(t, "w")
		level := rapid.Byte().Draw(t, "level")
		planes := make([]uint8, c*h*w)
		for i := range planes {
			planes[i] = level
		}
		out, err := f.fromBytes(planes, c, h, w)
		if err != nil {
			t.Fatal(err)
		}
		win := f.window(h, w) // the crop, in pixels of the resized image
		channels := c
		if f.Channels != 0 {
			channels = f.Channels
		}
		if want := []int{channels, win.height, win.width}; !slices.Equal(out.Shape, want) {
			t.Fatalf("shape %v, want %v", out.Shape, want)
		}
		value := float64(level) / 255
		if c == 3 && f.Channels == 1 {
			value *= 0.2989 + 0.587 + 0.114 // the weights of red, green and blue
		}
		for i, v := range out.Data {
			y, x := win.top+i/win.width%win.height, win.left+i%win.width
			want := value
			if y < 0 || x < 0 || y >= win.resizedH || x >= win.resizedW {
				want = 0
			}
			if math.Abs(float64(v)-want) > 1e-6 {
				t.Fatalf("value at (%d, %d) is %v, want %v", y, x, v, want)
			}
		}
	})
}

// TestFrameCrop checks that a frame with a crop, which computes only the pixels of the crop, gives
// the same values as the whole resized image.
func TestFrameCrop(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := drawFrame(t)
		f.Resize = max(1, f.Resize)
		h, w := rapid.IntRange(1, 30).Draw(t, "h"), rapid.IntRange(1, 30).Draw(t, "w")
		planes := rapid.SliceOfN(rapid.Byte(), 3*h*w, 3*h*w).Draw(t, "pixels")
		cropped, err := f.fromBytes(planes, 3, h, w)
		if err != nil {
			t.Fatal(err)
		}
		whole := f
		whole.Height, whole.Width = 0, 0
		resized, err := whole.fromBytes(planes, 3, h, w)
		if err != nil {
			t.Fatal(err)
		}
		win := f.window(h, w) // the crop, in pixels of the resized image
		for c := range cropped.Shape[0] {
			for y := max(0, -win.top); y < min(win.height, win.resizedH-win.top); y++ {
				for x := max(0, -win.left); x < min(win.width, win.resizedW-win.left); x++ {
					got := cropped.Data[(c*win.height+y)*win.width+x]
					want := resized.Data[(c*win.resizedH+y+win.top)*win.resizedW+x+win.left]
					if got != want {
						t.Fatalf("(%d, %d, %d) is %v in the crop and %v in the whole image", c, y, x, got, want)
					}
				}
			}
		}
	})
}

// TestFrameErrors checks the errors of wrong settings of a frame and of inputs that it cannot take.
func TestFrameErrors(t *testing.T) {
	t.Parallel()
	grey := tensor.New(1, 4, 4)
	cases := []struct {
		name  string
		frame Frame
		input tensor.Tensor
		want  string
	}{
		{"negative", Frame{Resize: -1}, grey, "negative"},
		{"channels", Frame{Channels: 2}, grey, "2 channels"},
		{"interpolation", Frame{Height: 2, Interpolation: "box"}, grey, "bilinear, bicubic, lanczos or nearest"},
		{"rank", Frame{}, tensor.New(4, 4), "channels x height x width"},
		{"empty", Frame{Height: 3}, tensor.New(3, 0, 4), "empty"},
		{"five channels", Frame{Channels: 3}, tensor.New(5, 4, 4), "5 channels"},
		{"too large", Frame{Height: 1 << 20, Width: 1 << 20}, grey, "too large"},
		{"huge aspect ratio", Frame{Resize: 1 << 14}, tensor.New(3, 1, 1<<10), "too large"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if _, err := c.frame.Tensor(c.input); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// Test16BitImagesKeepTheirPrecision checks that images of 16 bits per channel are not rounded to 8.
// img decodes a file of testdata/images. Frame{} keeps the size and the channels.
func Test16BitImagesKeepTheirPrecision(t *testing.T) {
	t.Parallel()
	got, err := Frame{}.Image(img(t, "deep.png"))
	if err != nil {
		t.Fatal(err)
	}
	between := false
	for _, v := range got.Data {
		between = between || math.Abs(float64(v)*255-math.Round(float64(v)*255)) > 0.1
	}
	if !slices.Equal(got.Shape, []int{1, 5, 7}) || !between {
		t.Errorf("shape %v, want [1 5 7]; values between two of 256 levels: %v, want true", got.Shape, between)
	}
	alpha := image.NewNRGBA64(image.Rect(3, 5, 4, 6))
	alpha.Set(3, 5, color.NRGBA64{R: 0x8001, G: 0xffff, B: 1, A: 0x4000})
	if got, err = (Frame{}).Image(alpha); err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{0x8001, 0xffff, 1} {
		// Alpha is divided out, which rounds.
		if d := math.Abs(float64(got.Data[i])*0xffff - want); d > 2 {
			t.Errorf("channel %d differs by %v / 65535 from the colour without alpha", i, d)
		}
	}
}

// TestImageTypesAgree checks that the same pixels give the same image for every Go image type and
// any bounds.
func TestImageTypesAgree(t *testing.T) {
	t.Parallel()
	src := image.NewNRGBA(image.Rect(0, 0, 6, 5))
	for i := range src.Pix {
		src.Pix[i] = uint8(i * 37)
		if i%4 == 3 {
			src.Pix[i] = 255
		}
	}
	want, err := Frame{}.Image(src.SubImage(image.Rect(2, 1, 6, 5)))
	if err != nil {
		t.Fatal(err)
	}
	bounds := image.Rect(2, 1, 6, 5)
	opaque := image.NewRGBA(bounds)
	paletted := image.NewPaletted(bounds, nil)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			opaque.Set(x, y, src.At(x, y))
			paletted.Palette = append(paletted.Palette, src.At(x, y))
			paletted.SetColorIndex(x, y, uint8(len(paletted.Palette)-1))
		}
	}
	for name, img := range map[string]image.Image{"RGBA": opaque, "Paletted": paletted, "another type": struct{ image.Image }{opaque}} {
		got, err := Frame{}.Image(img)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Data, want.Data) {
			t.Errorf("an image of type %s differs from NRGBA", name)
		}
	}
}

// TestLetterbox compares where an image lies in its frame with the function letterbox of
// Ultralytics, whose results these are, and checks the grey around it.
func TestLetterbox(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		h, w, height, width int
		want                window // with the negative of the padding above and to the left
	}{
		{40, 100, 64, 64, window{26, 64, -19, 0, 64, 64}},
		{61, 30, 64, 64, window{64, 31, 0, -16, 64, 64}},
		{480, 640, 640, 640, window{480, 640, -80, 0, 640, 640}},
		{333, 500, 640, 640, window{426, 640, -107, 0, 640, 640}},
		{100, 100, 384, 640, window{384, 384, 0, -128, 384, 640}},
		{7, 13, 32, 48, window{26, 48, -3, 0, 32, 48}},
		{1080, 1920, 640, 640, window{360, 640, -140, 0, 640, 640}},
	} {
		f := Frame{Letterbox: true, Fill: 0.25, Height: c.height, Width: c.width}
		if got := f.window(c.h, c.w); got != c.want {
			t.Errorf("%d x %d: %+v, want %+v", c.h, c.w, got, c.want)
		}
		white := tensor.New(1, c.h, c.w)
		for i := range white.Data {
			white.Data[i] = 1
		}
		framed, err := f.Tensor(white)
		if err != nil {
			t.Fatal(err)
		}
		grey := 0
		for _, v := range framed.Data {
			if math.Abs(float64(v)-0.25) < 1e-6 {
				grey++
			} else if math.Abs(float64(v)-1) > 1e-6 {
				t.Fatalf("%d x %d: value %v", c.h, c.w, v)
			}
		}
		if want := c.height*c.width - c.want.resizedH*c.want.resizedW; grey != want {
			t.Errorf("%d x %d: %d grey values, want %d", c.h, c.w, grey, want)
		}
	}
}
