package dataset

import (
	"bytes"
	"image"
	"image/jpeg"
	"testing"
)

// photo returns a JPEG of 500 x 375 pixels, the most frequent size in ImageNet.
func photo(b *testing.B) []byte {
	img := image.NewNRGBA(image.Rect(0, 0, 500, 375))
	for i := range img.Pix {
		img.Pix[i] = uint8(i*i>>7 ^ i>>3)
		if i%4 == 3 {
			img.Pix[i] = 255
		}
	}
	var buf bytes.Buffer
	if err := jpeg.Encode(&buf, img, &jpeg.Options{Quality: 90}); err != nil {
		b.Fatal(err)
	}
	return buf.Bytes()
}

func BenchmarkPhotoTo224(b *testing.B) {
	data := photo(b)
	frame := Frame{Resize: 256, Height: 224, Width: 224, Channels: 3}
	for b.Loop() {
		img, err := decodeImage(data)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := frame.Image(img); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "images/s")
}
