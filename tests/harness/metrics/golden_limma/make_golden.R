# Draws sets of variances with their degrees of freedom, and writes what limma makes of them. See README.md.
suppressMessages(library(limma))
set.seed(20261122)

draw <- function(degrees, prior_degrees, prior_variance = 0.01) {
  truth <- if (is.infinite(prior_degrees)) rep(prior_variance, length(degrees)) else
    prior_variance * prior_degrees / rchisq(length(degrees), prior_degrees)
  truth * rchisq(length(degrees), degrees) / degrees
}
one_of <- function(count, choices) sample(choices, count, replace = TRUE)

sets <- list()
add <- function(name, variance, degrees) {
  sets[[name]] <<- data.frame(set = name, variance = variance, degrees = degrees)
}
few <- rep(4, 10)
add("few", draw(few, 4), few)
few <- c(4, 7, 4, 2, 7, 7, 4, 2, 7, 4)
add("few_unequal", draw(few, 4), few)
few <- rep(7, 10)
add("few_with_an_outlier", draw(few, 20) * c(rep(1, 9), 400), few)
many <- rep(7, 100)
add("many", draw(many, 6), many)
many <- one_of(100, c(2, 4, 7))
add("many_unequal", draw(many, 6), many)
many <- rep(7, 100)
add("outliers", draw(many, 12) * c(rep(1, 94), 50, 100, 200, 500, 1000, 5000), many)
many <- one_of(100, c(2, 4, 7))
add("outliers_unequal", draw(many, 12) * c(rep(1, 94), 50, 100, 200, 500, 1000, 5000), many)
many <- rep(4, 60)
add("zeros", draw(many, 5) * c(0, 0, 0, rep(1, 57)), many)
add("one_zero", draw(many, 5) * c(0, rep(1, 59)), many)
many <- one_of(60, c(2, 4, 7))
add("zeros_unequal", draw(many, 5) * c(0, 0, 0, rep(1, 57)), many)
many <- rep(4, 40)
add("infinite", draw(many, Inf), many)
many <- rep(7, 100)
add("infinite_with_outliers", draw(many, Inf) * c(rep(1, 96), 30, 60, 90, 9000), many)
many <- one_of(100, c(2, 4, 7))
add("infinite_unequal", sqrt(0.01 * draw(many, Inf)), many)
add("infinite_unequal_with_outliers", sqrt(0.01 * draw(many, Inf)) * c(rep(1, 97), 30, 60, 9000), many)
many <- rep(4, 20)
add("equal", rep(0.25, 20), many)
many <- rep(4, 20)
add("two_heaps", rep(c(0.5, 2), 10), many)
many <- rep(2, 100)
add("wild", draw(many, 0.6), many)

as_eBayes_sees <- function(set) {
  rows <- nrow(set)
  fit <- new("MArrayLM", list(
    coefficients = matrix(0, rows, 1), stdev.unscaled = matrix(1, rows, 1),
    sigma = sqrt(set$variance), df.residual = set$degrees
  ))
  eBayes(fit, robust = TRUE)
}

priors <- do.call(rbind, lapply(sets, function(set) {
  plain <- suppressWarnings(fitFDist(set$variance, df1 = set$degrees))
  robust <- suppressWarnings(limma:::fitFDistRobustly(set$variance, df1 = set$degrees))
  data.frame(
    set = set$set[1], plain_degrees = plain$df2, plain_variance = plain$scale,
    degrees = robust$df2, variance = robust$scale
  )
}))
variants <- do.call(rbind, lapply(sets, function(set) {
  fit <- suppressWarnings(as_eBayes_sees(set))
  data.frame(set, prior_degrees = fit$df.prior, moderated = fit$s2.post, total_degrees = fit$df.total)
}))

write.precisely <- function(data, path) {
  numeric <- sapply(data, is.numeric)
  data[numeric] <- lapply(data[numeric], function(column) sprintf("%.17g", column))
  write.csv(data, path, row.names = FALSE, quote = FALSE)
}
write.precisely(priors, "priors.csv")
write.precisely(variants, "variants.csv")
