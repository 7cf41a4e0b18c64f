package audio_test

import (
	"fmt"
	"log"
	"math"

	"github.com/noether-ml/noether/internal/audio"
)

// The example resamples a tone of 440 Hz from 44.1 kHz to 16 kHz.
func ExampleResample() {
	tone := make([]float32, 44100)
	for i := range tone {
		tone[i] = float32(0.5 * math.Sin(2*math.Pi*440*float64(i)/44100))
	}
	wave, err := audio.Resample(tone, 44100, 16000)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(wave), "values")
	// Output: 16000 values
}
