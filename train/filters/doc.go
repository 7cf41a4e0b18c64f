// Package filters shows learned filters, and says how well a Gabor function describes one.
//
// A Gabor function is a plane wave under a Gaussian,
//
//	g(x, y) = a exp(-u^2 / (2 s^2) - v^2 / (2 t^2)) cos(2 pi f u + phi),
//	u =  (x - x0) cos(theta) + (y - y0) sin(theta),   v = -(x - x0) sin(theta) + (y - y0) cos(theta):
//
// localised, oriented and of one frequency, as simple cells of the visual cortex are (Daugman 1985)
// and as units that learned from natural images are found to be. Fit finds the closest one by least
// squares and tells what share of the filter it explains. Since seven parameters explain a part of
// anything, Noise tells what they explain of noise of the same size.
package filters
