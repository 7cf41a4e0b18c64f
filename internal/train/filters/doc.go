// Package filters measures how well a Gabor function fits a learned filter, and draws filters side
// by side in one image, as contact sheets.
//
// A Gabor function is a plane wave under a Gaussian window,
//
//	g(x, y) = a exp(-u^2 / (2 s^2) - v^2 / (2 t^2)) cos(2 pi f u + phi),
//	u =  (x - x0) cos(theta) + (y - y0) sin(theta),   v = -(x - x0) sin(theta) + (y - y0) cos(theta),
//
// where a is the amplitude, (x0, y0) the centre, s and t are the standard deviations of the window
// along and across the wave, f is the frequency, phi the phase and theta the direction of the wave.
// The function is localised, oriented and of one frequency, like the receptive fields of simple
// cells in the visual cortex (Daugman 1985) and of many units that are trained on natural images.
// Fit finds the closest Gabor function by least squares, and the fraction of the filter's energy
// (sum of squares) that it explains. With eight parameters it explains a part of any filter, even
// of noise. For comparison, Noise returns these fractions for noise of the same size.
package filters
