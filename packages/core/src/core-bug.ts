/** A step was asked for something that only a defect in the caller can ask for. */
export class CoreBug extends Error {}
